#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewriter.h"

namespace hone::graph {
namespace {

/// y = scale · x + shift, per channel.
struct Affine {
  std::vector<double> scale;
  std::vector<double> shift;
};

const ConstantPtr& ConstantOf(const Graph& graph, ValueId id) { return graph.values[id].constant; }

bool IsConvolution(const Node& node) { return node.op == "Conv" || node.op == "ConvTranspose"; }

/// Which dimension of a linear node's result is its channel, and which of its weights.
struct Channels {
  size_t of_result;
  size_t of_weights;
  int64_t count;
};

std::optional<Channels> ChannelsOf(const Graph& graph, const Node& node) {
  const bool conv = IsConvolution(node);
  if (!conv && node.op != "MatMul") return std::nullopt;
  const Value& result = graph.values[node.outputs[0]];
  const ConstantPtr& weights = ConstantOf(graph, node.inputs[1]);
  if (weights == nullptr || !ir::IsFloat(result.type.dtype)) return std::nullopt;
  const OpCall call = MakeCall(graph, node);
  const size_t rank = result.type.shape.size();
  if (conv) {
    if (node.inputs.size() > 2 && node.inputs[2] != kNoValue &&
        ConstantOf(graph, node.inputs[2]) == nullptr) {
      return std::nullopt;
    }
    // Weights of a transposed convolution are [ic, oc / groups, …]: only one group names each
    // output channel once.
    const bool transposed = node.op == "ConvTranspose";
    if (transposed && call.Int("group", 1) != 1) return std::nullopt;
    const size_t channel = call.String("layout", "nchw") == "nhwc" ? rank - 1 : 1;
    return Channels{channel, transposed ? size_t{1} : size_t{0}, result.type.shape[channel]};
  }
  if (weights->type.shape.size() != 2) return std::nullopt;
  return Channels{rank - 1, call.Int("transpose_b", 0) != 0 ? size_t{0} : size_t{1},
                  result.type.shape[rank - 1]};
}

// The values of a constant operand, one a channel, when it broadcasts over everything else.
std::optional<std::vector<double>> PerChannel(const TensorData& data, size_t rank, size_t channel,
                                              int64_t count) {
  const std::vector<int64_t>& shape = data.type.shape;
  if (data.type.NumElements() == 1 && shape.size() <= rank)
    return std::vector<double>(count, data.DoubleAt(0));
  if (shape.size() > rank || data.type.NumElements() != count) return std::nullopt;
  const size_t missing = rank - shape.size();
  if (channel < missing || shape[channel - missing] != count) return std::nullopt;
  return data.AsDoubles();
}

std::optional<Affine> BatchNormAffine(const Graph& graph, const Node& node) {
  std::vector<std::vector<double>> parameters;
  for (size_t k = 1; k < 5; ++k) {
    const ConstantPtr& data = ConstantOf(graph, node.inputs[k]);
    if (data == nullptr) return std::nullopt;
    parameters.push_back(data->AsDoubles());
  }
  const double epsilon = MakeCall(graph, node).Float("epsilon", 1e-5);
  Affine affine;
  for (size_t c = 0; c < parameters[0].size(); ++c) {
    const double scale = parameters[0][c] / std::sqrt(parameters[3][c] + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back(parameters[1][c] - parameters[2][c] * scale);
  }
  return affine;
}

// What `node` does to operand x, when that is a scale and a shift per channel.
std::optional<Affine> AffineOf(const Graph& graph, const Node& node, ValueId x,
                               const Channels& channels) {
  const size_t rank = graph.values[x].type.shape.size();
  if (node.op == "BatchNorm") {
    if (node.inputs[0] != x) return std::nullopt;
    const bool last = MakeCall(graph, node).String("layout", "nchw") == "nhwc";
    if ((last ? rank - 1 : 1) != channels.of_result) return std::nullopt;
    return BatchNormAffine(graph, node);
  }
  if (node.op != "Binary" || graph.values[node.outputs[0]].type != graph.values[x].type)
    return std::nullopt;
  const bool left = node.inputs[0] == x;
  const ConstantPtr& other = ConstantOf(graph, node.inputs[left ? 1 : 0]);
  if (other == nullptr) return std::nullopt;
  std::optional<std::vector<double>> values =
      PerChannel(*other, rank, channels.of_result, channels.count);
  if (!values) return std::nullopt;
  const std::string fn = MakeCall(graph, node).String("fn", "");
  const std::vector<double> ones(values->size(), 1.0);
  const std::vector<double> zeros(values->size(), 0.0);
  if (fn == "add") return Affine{ones, *values};
  if (fn == "mul") return Affine{*values, zeros};
  if (fn == "sub") {
    for (double& value : *values) value = left ? -value : value;
    return Affine{left ? ones : std::vector<double>(values->size(), -1.0), *values};
  }
  if (fn == "div" && left) {
    for (double& value : *values) value = 1.0 / value;
    return Affine{*values, zeros};
  }
  return std::nullopt;
}

ConstantPtr ScaledWeights(const TensorData& weights, size_t channel,
                          const std::vector<double>& scale) {
  std::vector<double> values = weights.AsDoubles();
  int64_t inner = 1;
  for (size_t d = channel + 1; d < weights.type.shape.size(); ++d) inner *= weights.type.shape[d];
  const int64_t count = weights.type.shape[channel];
  for (size_t i = 0; i < values.size(); ++i)
    values[i] *= scale[static_cast<int64_t>(i) / inner % count];
  return MakeConstant(weights.type.dtype, weights.type.shape, values);
}

/// A linear node and the nodes after it that only scale and shift its channels.
struct Chain {
  Affine total;
  ValueId result = kNoValue;
  std::vector<NodeId> nodes;
  bool scales = false;
};

class BatchNormFolder {
 public:
  explicit BatchNormFolder(Graph& graph)
      : readers_(graph.Readers()),
        is_output_(graph.values.size()),
        rewriter_(graph),
        graph_(graph) {
    for (ValueId output : graph.outputs) is_output_[output] = true;
    dropped_.resize(rewriter_.old_nodes().size());
  }

  absl::StatusOr<int> Run() {
    for (size_t n = 0; n < rewriter_.old_nodes().size(); ++n) {
      if (dropped_[n]) continue;
      const Node& node = rewriter_.old_nodes()[n];
      HONE_ASSIGN_OR_RETURN(bool done, FoldInto(node));
      if (!done) {
        HONE_ASSIGN_OR_RETURN(done, Express(node));
      }
      if (done) {
        ++changes_;
      } else {
        rewriter_.Keep(node);
      }
    }
    HONE_RETURN_IF_ERROR(rewriter_.Finish());
    return changes_;
  }

 private:
  Chain Follow(const Node& node, const Channels& channels) const {
    Chain chain;
    chain.total = {std::vector<double>(channels.count, 1.0),
                   std::vector<double>(channels.count, 0.0)};
    if (IsConvolution(node) && node.inputs.size() > 2 && node.inputs[2] != kNoValue) {
      chain.total.shift = ConstantOf(graph_, node.inputs[2])->AsDoubles();
    }
    chain.result = node.outputs[0];
    while (!is_output_[chain.result] && readers_[chain.result].size() == 1) {
      const NodeId reader = readers_[chain.result][0];
      const Node& next = rewriter_.old_nodes()[reader];
      const std::optional<Affine> affine = AffineOf(graph_, next, chain.result, channels);
      if (!affine) break;
      for (size_t c = 0; c < affine->scale.size(); ++c) {
        chain.scales = chain.scales || affine->scale[c] != 1.0;
        chain.total.scale[c] *= affine->scale[c];
        chain.total.shift[c] = chain.total.shift[c] * affine->scale[c] + affine->shift[c];
      }
      chain.nodes.push_back(reader);
      chain.result = next.outputs[0];
    }
    return chain;
  }

  absl::StatusOr<bool> FoldInto(const Node& node) {
    const std::optional<Channels> channels = ChannelsOf(graph_, node);
    if (!channels) return false;
    const Chain chain = Follow(node, *channels);
    const bool conv = IsConvolution(node);
    // A product with one addition behind it is as good as it gets.
    if (chain.nodes.empty() || (!conv && !chain.scales && chain.nodes.size() == 1)) return false;

    Node linear = rewriter_.Mapped(node);
    linear.outputs.clear();
    if (chain.scales) {
      const ConstantPtr weights = ConstantOf(graph_, node.inputs[1]);
      linear.inputs[1] =
          rewriter_.AddConstant(ScaledWeights(*weights, channels->of_weights, chain.total.scale));
    }
    bool shifts = false;
    for (double shift : chain.total.shift) shifts = shifts || shift != 0.0;
    const ir::DType dtype = graph_.values[node.outputs[0]].type.dtype;
    ValueId bias = kNoValue;
    if (shifts)
      bias = rewriter_.AddConstant(MakeConstant(dtype, {channels->count}, chain.total.shift));
    if (conv) linear.inputs.resize(2);
    if (conv && shifts) linear.inputs.push_back(bias);
    HONE_ASSIGN_OR_RETURN(ValueId result, rewriter_.Add(std::move(linear)));
    if (!conv && shifts) {
      HONE_ASSIGN_OR_RETURN(result, rewriter_.Add("Binary", node.origin, {result, bias},
                                                  {{"fn", std::string("add")}}));
    }
    for (NodeId folded : chain.nodes) dropped_[folded] = true;
    rewriter_.Replace(chain.result, result);
    return true;
  }

  // A batch norm with known parameters that no linear node precedes: x · scale + shift.
  absl::StatusOr<bool> Express(const Node& node) {
    if (node.op != "BatchNorm") return false;
    const std::optional<Affine> affine = BatchNormAffine(graph_, node);
    if (!affine) return false;
    const ValueId x = rewriter_.Mapped(node.inputs[0]);
    const TensorType type = graph_.values[x].type;
    const bool last = MakeCall(graph_, node).String("layout", "nchw") == "nhwc";
    std::vector<int64_t> shape = {static_cast<int64_t>(affine->scale.size())};
    if (!last && type.shape.size() > 2) shape.resize(type.shape.size() - 1, 1);
    const ValueId scale = rewriter_.AddConstant(MakeConstant(type.dtype, shape, affine->scale));
    const ValueId shift = rewriter_.AddConstant(MakeConstant(type.dtype, shape, affine->shift));
    HONE_ASSIGN_OR_RETURN(ValueId scaled, rewriter_.Add("Binary", node.origin, {x, scale},
                                                        {{"fn", std::string("mul")}}));
    HONE_ASSIGN_OR_RETURN(ValueId shifted, rewriter_.Add("Binary", node.origin, {scaled, shift},
                                                         {{"fn", std::string("add")}}));
    rewriter_.Replace(node.outputs[0], shifted);
    return true;
  }

  std::vector<std::vector<NodeId>> readers_;
  std::vector<bool> is_output_;
  std::vector<bool> dropped_;
  Rewriter rewriter_;
  Graph& graph_;
  int changes_ = 0;
};

}  // namespace

absl::StatusOr<int> FoldBatchNorm(Graph& graph, const PassContext&) {
  return BatchNormFolder(graph).Run();
}

}  // namespace hone::graph
