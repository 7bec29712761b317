#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/constant_slice.h"
#include "graph/op.h"
#include "graph/passes/matcher.h"
#include "graph/passes/passes.h"

namespace hone::graph {
namespace {

using ir::DType;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// By place of one dimension: whether anything there is not zero. Dense weights are hardly read.
std::vector<bool> NonZeroAlong(const TensorData& data, size_t axis) {
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < axis; ++d) outer *= data.type.shape[d];
  for (size_t d = axis + 1; d < data.type.shape.size(); ++d) inner *= data.type.shape[d];
  const int64_t count = data.type.shape[axis];
  const auto is_zero = [&](int64_t element) {
    float value = 0;
    std::memcpy(&value, data.bytes.data() + 4 * element, sizeof value);
    return value == 0;
  };
  std::vector<bool> non_zero(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) {
    int64_t zeros = 0;
    while (zeros < outer * inner && is_zero((zeros / inner * count + k) * inner + zeros % inner))
      ++zeros;
    non_zero[static_cast<size_t>(k)] = zeros < outer * inner;
  }
  return non_zero;
}

/// A product with known weights of f32, and which of its dimensions are channels.
struct Product {
  NodeId node = -1;
  ConstantPtr weights;
  size_t channel = 0;      ///< of data and result alike
  size_t in = 0, out = 0;  ///< of the weights
};

/// What stands between two products, nearest to the second first, and what it all does to channels.
struct Chain {
  Product first, second;
  std::vector<NodeId> between;
};

class ZeroDropper {
 public:
  explicit ZeroDropper(Graph& graph) : graph_(graph), matcher_(graph) {}

  int Run() {
    int changes = 0;
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      const std::optional<Chain> chain = ChainTo(id);
      if (!chain) continue;
      const std::vector<int64_t> keep = ChannelsToKeep(*chain);
      const size_t all = static_cast<size_t>(chain->second.weights->type.shape[chain->second.in]);
      if (keep.size() == all) continue;
      Apply(*chain, keep);
      ++changes;
    }
    return changes;
  }

 private:
  ConstantPtr Known(ValueId id) const {
    return id == kNoValue ? nullptr : graph_.values[id].constant;
  }

  std::optional<Product> ProductAt(NodeId id) const {
    const Node& node = graph_.nodes[id];
    if (node.op != "MatMul" && node.op != "Conv") return std::nullopt;
    const OpCall call = MakeCall(graph_, node);
    Product p{id, Known(node.inputs[1])};
    if (p.weights == nullptr || p.weights->type.dtype != DType::kF32 ||
        Known(node.inputs[0]) != nullptr)
      return std::nullopt;
    const size_t rank = graph_.values[node.outputs[0]].type.shape.size();
    if (node.op == "MatMul") {
      if (p.weights->type.shape.size() != 2 || call.Int("transpose_a", 0) != 0) return std::nullopt;
      p.channel = rank - 1;
      p.out = call.Int("transpose_b", 0) != 0 ? 0 : 1;
      p.in = 1 - p.out;
      return p;
    }
    const bool has_bias = node.inputs.size() > 2 && node.inputs[2] != kNoValue;
    if (call.Int("group", 1) != 1 || call.String("layout", "nchw") != "nchw" ||
        (has_bias && Known(node.inputs[2]) == nullptr))
      return std::nullopt;
    p.channel = 1;
    p.out = 0;
    p.in = 1;
    return p;
  }

  /// Whether channels pass through the node one by one.
  bool KeepsChannels(const Node& node, size_t channel) const {
    const std::vector<int64_t>& shape = graph_.values[node.outputs[0]].type.shape;
    if (node.outputs.size() != 1 || graph_.values[node.inputs[0]].type.shape != shape) {
      return node.op == "Pool" && node.outputs.size() == 1 && channel == 1 &&
             MakeCall(graph_, node).String("layout", "nchw") == "nchw";
    }
    if (node.op == "Unary" || node.op == "Activation") return true;
    if (node.op == "Pool") return channel == 1;
    if (node.op != "Binary") return false;
    const ConstantPtr other = Known(node.inputs[1]);
    if (other == nullptr) return false;
    const std::vector<int64_t>& own = other->type.shape;
    return own.size() <= shape.size() &&
           (other->type.NumElements() == 1 || AxisOf(*other, shape, channel).has_value());
  }

  /// The dimension of a constant that is the channel, where all others have one element.
  static std::optional<size_t> AxisOf(const TensorData& data, const std::vector<int64_t>& shape,
                                      size_t channel) {
    const size_t missing = shape.size() - data.type.shape.size();
    if (channel < missing || data.type.shape[channel - missing] != shape[channel] ||
        data.type.NumElements() != shape[channel])
      return std::nullopt;
    return channel - missing;
  }

  std::optional<Chain> ChainTo(NodeId id) const {
    const std::optional<Product> second = ProductAt(id);
    if (!second) return std::nullopt;
    Chain chain{.first = {}, .second = *second, .between = {}};
    ValueId value = graph_.nodes[id].inputs[0];
    while (true) {
      const NodeId producer = graph_.values[value].producer;
      if (producer < 0 || matcher_.OnlyReader(value) == nullptr) return std::nullopt;
      const std::vector<int64_t>& shape = graph_.values[value].type.shape;
      if (const auto first = ProductAt(producer)) {
        if (first->channel != second->channel || shape.size() <= first->channel)
          return std::nullopt;
        chain.first = *first;
        return chain;
      }
      if (!KeepsChannels(graph_.nodes[producer], second->channel)) return std::nullopt;
      chain.between.push_back(producer);
      value = graph_.nodes[producer].inputs[0];
    }
  }

  std::vector<int64_t> ChannelsToKeep(const Chain& chain) const {
    const std::vector<bool> read = NonZeroAlong(*chain.second.weights, chain.second.in);
    const std::vector<bool> written = NonZeroAlong(*chain.first.weights, chain.first.out);
    std::vector<int64_t> keep;
    for (size_t c = 0; c < read.size(); ++c) {
      if (read[c] && (written[c] || Constantly(chain, c) != 0))
        keep.push_back(static_cast<int64_t>(c));
    }
    if (keep.empty()) keep.push_back(0);
    return keep;
  }

  /// What the second product reads of a channel of which the first one has no weights; NaN: not
  /// known to be one number.
  double Constantly(const Chain& chain, size_t c) const {
    const Node& first = graph_.nodes[chain.first.node];
    double value = 0;
    if (first.op == "Conv" && first.inputs.size() > 2 && first.inputs[2] != kNoValue)
      value = Known(first.inputs[2])->DoubleAt(static_cast<int64_t>(c));
    for (auto id = chain.between.rbegin(); id != chain.between.rend(); ++id) {
      const Node& node = graph_.nodes[*id];
      const std::string fn = MakeCall(graph_, node).String("fn", "");
      if (node.op == "Binary")
        value = Applied(fn, value, *Known(node.inputs[1]), c);
      else if (value != 0 || !KeepsZero(node.op, fn))
        return kUnknown;
    }
    return value;
  }

  static bool KeepsZero(const std::string& op, const std::string& fn) {
    static constexpr std::string_view kFunctions[] = {"neg",  "abs",       "sqrt",      "sin",
                                                      "tan",  "tanh",      "erf",       "gelu",
                                                      "silu", "gelu_tanh", "hard_swish"};
    return op == "Pool" || std::ranges::find(kFunctions, fn) != std::end(kFunctions);
  }

  static double Applied(const std::string& fn, double value, const TensorData& data, size_t c) {
    const double other = data.DoubleAt(data.type.NumElements() == 1 ? 0 : static_cast<int64_t>(c));
    if (fn == "add") return value + other;
    if (fn == "sub") return value - other;
    if (fn == "mul") return value * other;
    if (fn == "max") return std::max(value, other);
    if (fn == "min") return std::min(value, other);
    return kUnknown;
  }

  void Replace(NodeId node, size_t input, size_t axis, const std::vector<int64_t>& keep) {
    const ConstantPtr old = Known(graph_.nodes[node].inputs[input]);
    const ValueId made = graph_.AddConstant(Sliced(*old, axis, keep));
    graph_.nodes[node].inputs[input] = made;
  }

  void Apply(const Chain& chain, const std::vector<int64_t>& keep) {
    const auto shrink = [&](NodeId node) {
      graph_.values[graph_.nodes[node].outputs[0]].type.shape[chain.first.channel] =
          static_cast<int64_t>(keep.size());
    };
    Replace(chain.second.node, 1, chain.second.in, keep);
    Replace(chain.first.node, 1, chain.first.out, keep);
    const Node first = graph_.nodes[chain.first.node];
    if (first.op == "Conv" && first.inputs.size() > 2 && first.inputs[2] != kNoValue)
      Replace(chain.first.node, 2, 0, keep);
    for (const NodeId id : chain.between) {
      const Node node = graph_.nodes[id];
      const std::vector<int64_t> shape = graph_.values[node.outputs[0]].type.shape;
      if (node.op == "Binary" && Known(node.inputs[1])->type.NumElements() > 1)
        Replace(id, 1, *AxisOf(*Known(node.inputs[1]), shape, chain.first.channel), keep);
      shrink(id);
    }
    shrink(chain.first.node);
  }

  Graph& graph_;
  const Matcher matcher_;
};

}  // namespace

absl::StatusOr<int> DropZeros(Graph& graph, const PassContext&) { return ZeroDropper(graph).Run(); }

}  // namespace hone::graph
