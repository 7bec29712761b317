#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

using Shape = std::vector<int64_t>;
using Doubles = std::vector<double>;

class GroupNormRecogniser {
 public:
  explicit GroupNormRecogniser(Graph& graph)
      : readers_(graph.Readers()), rewriter_(graph), graph_(graph) {}

  absl::StatusOr<int> Run() {
    int changes = 0;
    for (const Node& old : rewriter_.old_nodes()) {
      HONE_ASSIGN_OR_RETURN(bool found, Grouped(rewriter_.Mapped(old)));
      if (!found) {
        HONE_ASSIGN_OR_RETURN(found, ScaleOrBias(rewriter_.Mapped(old), old));
      }
      if (found) {
        ++changes;
      } else {
        rewriter_.Keep(old);
      }
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes;
  }

 private:
  const Shape& ShapeOf(ValueId id) const { return rewriter_.TypeOf(id).shape; }

  /// The operand's values, one a channel, when it is a constant that is the same at every position
  /// of a value of this rank (of each group where there are fewer).
  std::optional<Doubles> PerChannel(ValueId operand, size_t rank, int64_t channels) const {
    const ConstantPtr& data = graph_.values[operand].constant;
    if (data == nullptr) return std::nullopt;
    const Shape& shape = data->type.shape;
    const int64_t count = data->type.NumElements();
    const bool along_channels =
        shape.size() + 1 >= rank && shape.size() <= rank && shape[shape.size() + 1 - rank] == count;
    if (count < 1 || channels % count != 0 || (count > 1 && !along_channels)) return std::nullopt;
    const Doubles values = data->AsDoubles();
    Doubles spread;
    for (int64_t c = 0; c < channels; ++c)
      spread.push_back(values[static_cast<size_t>(c / (channels / count))]);
    return spread;
  }

  ValueId Constant(ir::DType dtype, const Doubles& values) {
    return rewriter_.AddConstant(
        MakeConstant(dtype, {static_cast<int64_t>(values.size())}, values));
  }

  /// The values of a scale or bias of `inner` (input i), `otherwise` where it has none.
  std::optional<Doubles> Parameter(const Node& inner, size_t i, double otherwise, size_t rank,
                                   int64_t channels) const {
    if (inner.inputs.size() <= i || inner.inputs[i] == kNoValue)
      return Doubles(static_cast<size_t>(channels), otherwise);
    return PerChannel(inner.inputs[i], rank, channels);
  }

  // Reshape(Normalise(Reshape(x, [n, groups, …]))) back to the shape of x.
  absl::StatusOr<bool> Grouped(const Node& node) {
    if (node.op != "Reshape") return false;
    const Node* inner = rewriter_.ProducerOf(node.inputs[0], "Normalise");
    if (inner == nullptr) return false;
    const OpCall call = MakeCall(graph_, *inner);
    const Node* split = rewriter_.ProducerOf(inner->inputs[0], "Reshape");
    if (split == nullptr || call.String("kind", "layer") == "rms") return false;
    const ValueId x = split->inputs[0];
    const Shape shape = ShapeOf(x), rows = ShapeOf(inner->inputs[0]);
    if (shape != ShapeOf(node.outputs[0]) || shape.size() < 3 || rows.size() < 3 ||
        rows[0] != shape[0] || rows[1] < 1 || shape[1] % rows[1] != 0)
      return false;
    Shape axes = call.Ints("axes");
    for (int64_t& axis : axes) axis += axis < 0 ? static_cast<int64_t>(rows.size()) : 0;
    std::sort(axes.begin(), axes.end());
    if (axes.size() + 2 != rows.size() || axes[0] != 2) return false;
    const auto scale = Parameter(*inner, 1, 1, rows.size(), shape[1]);
    const auto bias = Parameter(*inner, 2, 0, rows.size(), shape[1]);
    if (!scale || !bias) return false;
    return Make(node, x, rows[1], call.Float("epsilon", 1e-5), {*scale, *bias});
  }

  /// Values per channel.
  struct Parameters {
    Doubles scale, bias;
  };
  absl::StatusOr<bool> Make(const Node& node, ValueId x, int64_t groups, double epsilon,
                            const Parameters& parameters) {
    const ir::DType dtype = rewriter_.TypeOf(x).dtype;
    HONE_ASSIGN_OR_RETURN(
        ValueId result,
        rewriter_.Add("GroupNorm", node.origin,
                      {x, Constant(dtype, parameters.scale), Constant(dtype, parameters.bias)},
                      {{"groups", groups}, {"epsilon", epsilon}, {"layout", std::string("nchw")}}));
    rewriter_.Replace(node.outputs[0], result);
    return true;
  }

  // GroupNorm(x) · s and GroupNorm(x) + b of constants per channel, where nobody else reads it.
  absl::StatusOr<bool> ScaleOrBias(const Node& node, const Node& old) {
    if (node.op != "Binary") return false;
    const std::string fn = MakeCall(graph_, node).String("fn", "");
    if (fn != "mul" && fn != "add") return false;
    for (size_t k = 0; k < 2; ++k) {
      const Node* inner = rewriter_.ProducerOf(node.inputs[k], "GroupNorm");
      if (inner == nullptr || readers_[old.inputs[k]].size() != 1 ||
          std::ranges::count(graph_.outputs, old.inputs[k]) != 0 ||
          rewriter_.TypeOf(node.inputs[k]) != rewriter_.TypeOf(node.outputs[0]))
        continue;
      const ValueId x = inner->inputs[0];
      const size_t rank = ShapeOf(x).size();
      const int64_t channels = ShapeOf(x)[1];
      const std::optional<Doubles> operand = PerChannel(node.inputs[1 - k], rank, channels);
      // Its own have one axis: as beside rows of rank two.
      std::optional<Doubles> scale = Parameter(*inner, 1, 1, 2, channels);
      std::optional<Doubles> bias = Parameter(*inner, 2, 0, 2, channels);
      if (!operand || !scale || !bias) continue;
      for (size_t c = 0; c < scale->size(); ++c) {
        if (fn == "mul") (*scale)[c] *= (*operand)[c];
        (*bias)[c] = fn == "mul" ? (*bias)[c] * (*operand)[c] : (*bias)[c] + (*operand)[c];
      }
      const OpCall call = MakeCall(graph_, *inner);
      return Make(node, x, call.Int("groups", 1), call.Float("epsilon", 1e-5), {*scale, *bias});
    }
    return false;
  }

  std::vector<std::vector<NodeId>> readers_;  ///< before the rewriter takes the nodes
  Rewriter rewriter_;
  Graph& graph_;
};

}  // namespace

absl::StatusOr<int> RecogniseGroupNorm(Graph& graph, const PassContext&) {
  return GroupNormRecogniser(graph).Run();
}

}  // namespace hone::graph
