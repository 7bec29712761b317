#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/known_values.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

/// Below it a hidden score swallows what is added to it, and its exponential is 0 beside that of
/// any score that a network computes.
constexpr double kLow = -0x1p100;

/// Row i sees columns up to i + offset; elsewhere the mask is `hidden`, seen places are `seen`.
struct CausalMask {
  int64_t offset = 0;
  double seen = 0, hidden = 0;
};

/// What is computed instead of a masked value.
struct Masked {
  ValueId scores = kNoValue;
  ValueId hidden = kNoValue;  ///< kNoValue: a new constant of `lowest`
  double lowest = 0;
  int64_t offset = 0;
};

class CausalMasks {
 public:
  CausalMasks(const Graph& graph, Evaluator& evaluator)
      : graph_(graph),
        known_(graph, evaluator),
        readers_(graph.Readers()),
        is_output_(graph.values.size()) {
    for (ValueId output : graph.outputs) is_output_[output] = true;
  }

  absl::StatusOr<std::optional<Masked>> Find(const Node& node) {
    if (node.op == "Select") return OfSelect(node);
    const OpCall call = MakeCall(graph_, node);
    if (node.op == "Binary" && call.String("fn", "") == "add") return OfAdd(node);
    return std::nullopt;
  }

 private:
  const std::vector<int64_t>& ShapeOf(ValueId id) const { return graph_.values[id].type.shape; }

  absl::StatusOr<std::optional<Masked>> OfSelect(const Node& node) {
    HONE_ASSIGN_OR_RETURN(const auto mask, MaskOf(node.inputs[0], node.outputs[0]));
    if (!mask) return std::nullopt;
    const bool straight = mask->seen != 0;
    const Masked masked{straight ? node.inputs[1] : node.inputs[2],
                        straight ? node.inputs[2] : node.inputs[1], 0, mask->offset};
    const ConstantPtr& hidden = graph_.values[masked.hidden].constant;
    const bool low =
        hidden != nullptr && hidden->type.NumElements() == 1 && hidden->DoubleAt(0) <= kLow;
    if (!low || ShapeOf(masked.scores) != ShapeOf(node.outputs[0])) return std::nullopt;
    return masked;
  }

  absl::StatusOr<std::optional<Masked>> OfAdd(const Node& node) {
    if (!FeedsSoftmax(node.outputs[0])) return std::nullopt;
    for (size_t k = 0; k < 2; ++k) {
      if (ShapeOf(node.inputs[k]) != ShapeOf(node.outputs[0])) continue;
      HONE_ASSIGN_OR_RETURN(const auto mask, MaskOf(node.inputs[1 - k], node.outputs[0]));
      if (mask && mask->seen == 0 && mask->hidden <= kLow)
        return Masked{node.inputs[k], kNoValue, mask->hidden, mask->offset};
    }
    return std::nullopt;
  }

  /// Whether a softmax along the rows is all that reads the value.
  bool FeedsSoftmax(ValueId id) const {
    if (readers_[id].size() != 1 || is_output_[id]) return false;
    const Node& reader = graph_.nodes[readers_[id][0]];
    const std::vector<int64_t>& shape = ShapeOf(id);
    if (reader.op == "Reshape") {
      const std::vector<int64_t>& to = ShapeOf(reader.outputs[0]);
      return !to.empty() && !shape.empty() && to.back() == shape.back() &&
             FeedsSoftmax(reader.outputs[0]);
    }
    const auto last = static_cast<int64_t>(shape.size()) - 1;
    const int64_t axis = MakeCall(graph_, reader).Int("axis", -1);
    return reader.op == "Softmax" && (axis == -1 || axis == last);
  }

  /// The known value as a mask of the rows and columns of `of`.
  absl::StatusOr<std::optional<CausalMask>> MaskOf(ValueId id, ValueId of) {
    const std::vector<int64_t>& shape = ShapeOf(id);
    const std::vector<int64_t>& masked = ShapeOf(of);
    if (!known_.IsKnown(id) || shape.size() < 2 || shape.end()[-1] != masked.end()[-1] ||
        shape.end()[-2] != masked.end()[-2])
      return std::nullopt;
    if (const auto found = masks_.find(id); found != masks_.end()) return found->second;
    HONE_ASSIGN_OR_RETURN(const ConstantPtr data, known_.ValueOf(id));
    return masks_[id] = data == nullptr ? std::nullopt : Read(*data);
  }

  static std::optional<CausalMask> Read(const TensorData& data) {
    const int64_t rows = data.type.shape.end()[-2], columns = data.type.shape.back();
    const int64_t elements = data.type.NumElements();
    if (rows < 2 || columns < 2 || elements == 0) return std::nullopt;
    CausalMask mask{0, data.DoubleAt(0), data.DoubleAt(columns - 1)};
    if (mask.seen == mask.hidden) return std::nullopt;
    while (data.DoubleAt(mask.offset + 1) == mask.seen) ++mask.offset;
    for (int64_t i = 0; i < elements; ++i) {
      const bool seen = i % columns <= i / columns % rows + mask.offset;
      if (data.DoubleAt(i) != (seen ? mask.seen : mask.hidden)) return std::nullopt;
    }
    return mask;
  }

  const Graph& graph_;
  KnownValues known_;
  const std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
  std::map<ValueId, std::optional<CausalMask>> masks_;
};

}  // namespace

absl::StatusOr<int> RecogniseCausal(Graph& graph, const PassContext& context) {
  std::map<ValueId, Masked> found;  // by what the node makes
  CausalMasks masks(graph, context.evaluator);
  for (const Node& node : graph.nodes) {
    HONE_ASSIGN_OR_RETURN(const auto masked, masks.Find(node));
    if (masked) found[node.outputs[0]] = *masked;
  }
  if (found.empty()) return 0;
  Rewriter rewriter(graph);
  for (const Node& old : rewriter.old_nodes()) {
    const auto masked = found.find(old.outputs[0]);
    if (masked == found.end()) {
      rewriter.Keep(old);
      continue;
    }
    auto [scores, hidden, lowest, offset] = masked->second;
    if (hidden == kNoValue)
      hidden = rewriter.AddConstant(MakeConstant(rewriter.TypeOf(scores).dtype, {}, {lowest}));
    HONE_ASSIGN_OR_RETURN(const ValueId made,
                          rewriter.Add("Causal", old.origin, {rewriter.Mapped(scores), hidden},
                                       {{"offset", offset}}));
    rewriter.Replace(old.outputs[0], made);
  }
  HONE_RETURN_IF_ERROR(rewriter.Finish());
  return static_cast<int>(found.size());
}

}  // namespace hone::graph
