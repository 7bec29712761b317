#include "graph/passes/channel_trace.h"

#include <algorithm>
#include <string>
#include <utility>

#include "graph/op.h"

namespace hone::graph {
namespace {

using Shape = std::vector<int64_t>;

/// Where channels of a reshaped tensor stand. Where they are split over several dimensions:
/// nothing, and `heads` gets how many of them lie in each place of the first.
std::optional<ChannelPlace> Reshaped(const Shape& from, const Shape& to, const ChannelPlace& place,
                                     int64_t* heads) {
  int64_t before = 1, reached = 1;
  for (size_t d = 0; d < place.axis; ++d) before *= from[d];
  const int64_t channels = from[place.axis] / place.inner;
  for (size_t d = 0; d < to.size() && reached <= before; ++d) {
    if (reached == before && to[d] > 1) {
      if (to[d] % channels == 0) return ChannelPlace{d, to[d] / channels};
      if (from[place.axis] % to[d] == 0) *heads = from[place.axis] / to[d];
      return std::nullopt;
    }
    reached *= to[d];
  }
  return std::nullopt;
}

/// One trace under way. Each rule below says for a node where channels stand in its inputs, given
/// its output, or in its output, given an input; both must agree.
class Tracing {
 public:
  Tracing(const Graph& graph, const std::vector<std::vector<NodeId>>& readers,
          const std::vector<bool>& is_output)
      : graph_(graph), readers_(readers), is_output_(is_output) {}

  /// False where others know of the channels.
  bool Run(ValueId value, const ChannelPlace& place) {
    trace_.channels = ShapeOf(value)[place.axis] / place.inner;
    if (trace_.channels <= 1 || !Visit(value, place)) return false;
    while (!open_.empty()) {
      const ValueId next = open_.back();
      open_.pop_back();
      const ChannelPlace at = trace_.values.at(next);
      if (!Into(graph_.nodes[graph_.values[next].producer], at)) return false;
      for (const NodeId reader : readers_[next])
        if (!OutOf(graph_.nodes[reader], next, at)) return false;
    }
    return !trace_.makers.empty();
  }

  ChannelTrace Take() { return std::move(trace_); }
  /// Channels to be taken together, where a reshaping told them apart no other way; 0: none.
  int64_t heads() const { return heads_; }

 private:
  const Shape& ShapeOf(ValueId id) const { return graph_.values[id].type.shape; }
  ConstantPtr Known(const Node& node, size_t input) const {
    if (input >= node.inputs.size() || node.inputs[input] == kNoValue) return nullptr;
    return graph_.values[node.inputs[input]].constant;
  }
  NodeId IdOf(const Node& node) const { return static_cast<NodeId>(&node - graph_.nodes.data()); }

  bool Visit(ValueId value, const ChannelPlace& place) {
    if (const auto it = trace_.values.find(value); it != trace_.values.end())
      return it->second == place;
    const Value& own = graph_.values[value];
    if (own.producer < 0 || is_output_[value] ||
        own.type.shape[place.axis] != trace_.channels * place.inner)
      return false;
    trace_.values[value] = place;
    open_.push_back(value);
    return true;
  }

  bool AddConstant(const Node& node, size_t input, const ChannelPlace& place) {
    trace_.constants.push_back({IdOf(node), input, place});
    return true;
  }

  /// An operand whose dimensions are aligned with the output's from the right.
  bool VisitOperand(const Node& node, size_t input, const ChannelPlace& place) {
    const Shape& own = ShapeOf(node.inputs[input]);
    const size_t missing = ShapeOf(node.outputs[0]).size() - own.size();
    if (place.axis < missing || own[place.axis - missing] == 1) return true;
    const ChannelPlace at = {place.axis - missing, place.inner};
    if (Known(node, input) != nullptr) return AddConstant(node, input, at);
    return Visit(node.inputs[input], at);
  }

  // ---- products with known weights ----

  bool HasWeights(const Node& node) const {
    const ConstantPtr weights = Known(node, 1);
    if (weights == nullptr || Known(node, 0) != nullptr || weights->type.dtype != ir::DType::kF32)
      return false;
    const OpCall call = MakeCall(graph_, node);
    if (node.op == "MatMul")
      return weights->type.shape.size() == 2 && call.Int("transpose_a", 0) == 0;
    const bool bias_unknown =
        node.inputs.size() > 2 && node.inputs[2] != kNoValue && Known(node, 2) == nullptr;
    return node.op == "Conv" && call.String("layout", "nchw") == "nchw" && !bias_unknown;
  }
  bool IsDepthwise(const Node& node) const {
    const Shape& weights = Known(node, 1)->type.shape;
    const int64_t groups = MakeCall(graph_, node).Int("group", 1);
    return node.op == "Conv" && groups > 1 && groups == weights[0] && weights[1] == 1;
  }
  bool IsWhole(const Node& node) const {
    return node.op == "MatMul" || MakeCall(graph_, node).Int("group", 1) == 1;
  }
  size_t ChannelAxis(const Node& node) const {
    return node.op == "MatMul" ? ShapeOf(node.outputs[0]).size() - 1 : 1;
  }
  /// A dimension of the weights.
  size_t ColumnAxis(const Node& node) const {
    return node.op == "MatMul" && MakeCall(graph_, node).Int("transpose_b", 0) == 0 ? 1 : 0;
  }

  bool MakeBy(const Node& node, const ChannelPlace& place) {
    const bool biased = node.inputs.size() > 2 && node.inputs[2] != kNoValue;
    if (biased) AddConstant(node, 2, {0, place.inner});
    if (IsDepthwise(node)) {
      trace_.depthwise.push_back(IdOf(node));
      AddConstant(node, 1, {0, place.inner});
      return place.inner == 1 && Visit(node.inputs[0], place);
    }
    trace_.makers.push_back({IdOf(node), 1, {ColumnAxis(node), place.inner}});
    return IsWhole(node);
  }

  // ---- nodes between them ----

  /// Where channels of the output stand in the inputs.
  bool Into(const Node& node, const ChannelPlace& place) {
    if (node.outputs.size() != 1 || node.inputs.empty() || node.inputs[0] == kNoValue) return false;
    const OpCall call = MakeCall(graph_, node);
    if (HasWeights(node)) {
      if (place.axis == ChannelAxis(node)) return MakeBy(node, place);
      return node.op == "MatMul" && Visit(node.inputs[0], place);
    }
    if (node.op == "MatMul") return IntoProduct(node, call, place);
    if (node.op == "Binary" || node.op == "Where") {
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (!VisitOperand(node, k, place)) return false;
      return true;
    }
    if (Known(node, 0) != nullptr) return false;
    if (node.op == "Reshape") {
      const auto at = Reshaped(ShapeOf(node.outputs[0]), ShapeOf(node.inputs[0]), place, &heads_);
      trace_.reshapes.push_back(IdOf(node));
      return at && Visit(node.inputs[0], *at);
    }
    if (node.op == "Transpose") {
      const auto axis = static_cast<size_t>(call.Ints("perm")[place.axis]);
      return Visit(node.inputs[0], {axis, place.inner});
    }
    return KeepsDimension(node, call, place.axis) && Visit(node.inputs[0], place);
  }

  /// A node of one input whose places along a dimension are computed each from the same one.
  bool KeepsDimension(const Node& node, const OpCall& call, size_t axis) const {
    const auto rank = static_cast<int64_t>(ShapeOf(node.inputs[0]).size());
    if (node.op == "Unary" || node.op == "Activation") return true;
    if (node.op == "Pool") return axis <= 1 && call.String("layout", "nchw") == "nchw";
    if (node.op == "Softmax")
      return (call.Int("axis", -1) + rank) % rank != static_cast<int64_t>(axis);
    if (node.op != "Reduce" || call.Int("keepdims", 1) == 0) return false;
    return std::ranges::none_of(call.Ints("axes"), [&](int64_t each) {
      return (each + rank) % rank == static_cast<int64_t>(axis);
    });
  }

  /// A product of two computed values keeps rows, columns and what stands before both.
  bool IntoProduct(const Node& node, const OpCall& call, const ChannelPlace& place) {
    const size_t rank = ShapeOf(node.outputs[0]).size();
    if (node.inputs.size() != 2 || ShapeOf(node.inputs[0]).size() < 2 ||
        ShapeOf(node.inputs[1]).size() < 2)
      return false;
    if (place.axis + 2 < rank) return VisitOperand(node, 0, place) && VisitOperand(node, 1, place);
    const size_t input = place.axis + 2 == rank ? 0 : 1;
    const bool turned = call.Int(input == 0 ? "transpose_a" : "transpose_b", 0) != 0;
    const size_t own = ShapeOf(node.inputs[input]).size();
    const ChannelPlace at = {(input == 0) == turned ? own - 1 : own - 2, place.inner};
    if (Known(node, input) != nullptr) return AddConstant(node, input, at);
    return Visit(node.inputs[input], at);
  }

  /// Where channels of an input stand in the output, which is then visited; or that they end here.
  bool OutOf(const Node& node, ValueId value, const ChannelPlace& place) {
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k] == value && !OutOf(node, k, place)) return false;
    return true;
  }

  bool OutOf(const Node& node, size_t input, const ChannelPlace& place) {
    if (node.outputs.size() != 1) return false;
    const OpCall call = MakeCall(graph_, node);
    const Shape &from = ShapeOf(node.inputs[input]), &to = ShapeOf(node.outputs[0]);
    ChannelPlace at = place;
    if (HasWeights(node)) {
      if (input != 0) return false;
      const bool summed = place.axis == ChannelAxis(node) && !IsDepthwise(node);
      if (summed) trace_.readers.push_back({IdOf(node), 1, {1 - ColumnAxis(node), place.inner}});
      if (summed) return IsWhole(node);
      if (node.op != "MatMul" && place.axis != 1) return false;
    } else if (node.op == "Reshape") {
      const auto reshaped = Reshaped(from, to, place, &heads_);
      if (!reshaped) return false;
      at = *reshaped;
    } else if (node.op == "Transpose") {
      const std::vector<int64_t> perm = call.Ints("perm");
      const auto it = std::ranges::find(perm, static_cast<int64_t>(place.axis));
      at.axis = static_cast<size_t>(it - perm.begin());
    } else if (node.op == "MatMul") {
      if (input > 1) return false;
      if (place.axis + 2 >= from.size()) {
        const bool turned = call.Int(input == 0 ? "transpose_a" : "transpose_b", 0) != 0;
        const bool summed = (place.axis + 1 == from.size()) == ((input == 0) != turned);
        if (summed) return false;
        at.axis = input == 0 ? to.size() - 2 : to.size() - 1;
      } else {
        at.axis += to.size() - from.size();
      }
    } else {
      at.axis += to.size() - from.size();
    }
    return at.axis < to.size() && Visit(node.outputs[0], at);
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>>& readers_;
  const std::vector<bool>& is_output_;
  ChannelTrace trace_;
  std::vector<ValueId> open_;
  int64_t heads_ = 0;
};

}  // namespace

ChannelTracer::ChannelTracer(const Graph& graph)
    : graph_(graph), readers_(graph.Readers()), is_output_(graph.values.size()) {
  for (const ValueId output : graph.outputs) is_output_[output] = true;
}

std::optional<ChannelTrace> ChannelTracer::TraceFrom(NodeId reader) const {
  const Node& node = graph_.nodes[reader];
  if ((node.op != "MatMul" && node.op != "Conv") || node.inputs.size() < 2) return std::nullopt;
  const Value& weights = graph_.values[node.inputs[1]];
  const Value& data = graph_.values[node.inputs[0]];
  if (weights.constant == nullptr || data.producer < 0 || data.type.shape.size() < 2)
    return std::nullopt;
  const size_t axis = node.op == "MatMul" ? data.type.shape.size() - 1 : 1;
  int64_t inner = 1;
  // Single channels first; then what a reshaping on the way takes together.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (data.type.shape[axis] % inner != 0) return std::nullopt;
    Tracing tracing(graph_, readers_, is_output_);
    if (tracing.Run(node.inputs[0], {axis, inner})) {
      ChannelTrace trace = tracing.Take();
      const bool reads =
          std::ranges::find(trace.readers, reader, &ChannelConstant::node) != trace.readers.end();
      return reads ? std::optional(std::move(trace)) : std::nullopt;
    }
    inner = tracing.heads();
    if (inner <= 1) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace hone::graph
