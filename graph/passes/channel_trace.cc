#include "graph/passes/channel_trace.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "graph/op.h"
#include "graph/passes/reshaped_channels.h"

namespace hone::graph {
namespace {

using Shape = std::vector<int64_t>;
using Ids = std::vector<int>;

/// One trace under way. Each rule says for a node where channels stand in its inputs, given its
/// output (Into), or in its output, given an input (OutOf). Where both differ on a channel, or none
/// knows the operator, the channel stays.
class Tracing {
 public:
  Tracing(const Graph& graph, const std::vector<std::vector<NodeId>>& readers,
          const std::vector<bool>& is_output)
      : graph_(graph), readers_(readers), is_output_(is_output) {}

  ChannelTrace Run(ValueId value, size_t axis, int64_t inner) {
    Visit(value, {axis, inner, NewIds(ShapeOf(value)[axis] / inner)});
    while (!open_.empty()) {
      const ValueId next = open_.back();
      open_.pop_back();
      const ChannelPlace at = trace_.values.at(next);
      const NodeId producer = graph_.values[next].producer;
      if (!Into(graph_.nodes[producer], at)) End(at.ids, {producer, next});
      for (const NodeId reader : readers_[next])
        if (!OutOf(graph_.nodes[reader], next, at)) End(at.ids, {reader, next});
    }
    return Finished();
  }

 private:
  const Shape& ShapeOf(ValueId id) const { return graph_.values[id].type.shape; }
  const Shape& ResultOf(const Node& node) const { return ShapeOf(node.outputs[0]); }
  bool Has(const Node& node, size_t input) const {
    return input < node.inputs.size() && node.inputs[input] != kNoValue;
  }
  ConstantPtr Known(const Node& node, size_t input) const {
    return Has(node, input) ? graph_.values[node.inputs[input]].constant : nullptr;
  }
  NodeId IdOf(const Node& node) const { return static_cast<NodeId>(&node - graph_.nodes.data()); }

  // ---- channels ----

  Ids NewIds(int64_t count) {
    Ids ids(static_cast<size_t>(count));
    std::iota(ids.begin(), ids.end(), static_cast<int>(same_.size()));
    same_.insert(same_.end(), ids.begin(), ids.end());
    return ids;
  }
  int Root(int id) {
    while (same_[id] != id) id = same_[id] = same_[same_[id]];
    return id;
  }
  void Unify(const Ids& a, const Ids& b) {
    for (size_t k = 0; k < a.size(); ++k) same_[Root(a[k])] = Root(b[k]);
  }
  void End(const Ids& ids, ChannelEnd end) {
    for (const int id : ids) ends_.emplace(id, end);
  }

  ChannelTrace Finished() {
    std::vector<int> number(same_.size(), -1);
    const auto resolve = [&](Ids& ids) {
      for (int& id : ids) {
        int& own = number[Root(id)];
        if (own < 0) own = trace_.channels++;
        id = own;
      }
    };
    for (auto& [value, place] : trace_.values) resolve(place.ids);
    for (auto* constants : {&trace_.makers, &trace_.readers, &trace_.constants})
      for (ChannelConstant& constant : *constants) resolve(constant.place.ids);
    for (const auto& [id, end] : ends_)
      if (number[Root(id)] >= 0) trace_.ends.emplace(number[Root(id)], end);
    std::ranges::sort(trace_.counting);
    const auto twice = std::ranges::unique(trace_.counting);
    trace_.counting.erase(twice.begin(), twice.end());
    return std::move(trace_);
  }

  // ---- values ----

  void Visit(ValueId value, ChannelPlace place) {
    const Value& own = graph_.values[value];
    if (const auto it = trace_.values.find(value); it != trace_.values.end()) {
      const ChannelPlace& before = it->second;
      if (before.axis == place.axis && before.inner == place.inner &&
          before.ids.size() == place.ids.size())  // one that is broadcast has fewer
        return Unify(before.ids, place.ids);
      End(before.ids, {own.producer, value});
      return End(place.ids, {own.producer, value});
    }
    const auto count = static_cast<int64_t>(place.ids.size());
    if (own.producer < 0 || is_output_[value] || own.type.shape[place.axis] != count * place.inner)
      return End(place.ids, {is_output_[value] ? -1 : own.producer, value});
    trace_.values[value] = std::move(place);
    open_.push_back(value);
  }

  void VisitInput(const Node& node, size_t input, ChannelPlace place) {
    if (Known(node, input) != nullptr)
      trace_.constants.push_back({IdOf(node), input, std::move(place)});
    else
      Visit(node.inputs[input], std::move(place));
  }

  /// An operand whose dimensions are aligned with the output's from the right.
  void VisitOperand(const Node& node, size_t input, ChannelPlace place) {
    const Shape& own = ShapeOf(node.inputs[input]);
    const size_t missing = ResultOf(node).size() - own.size();
    if (place.axis < missing || own[place.axis - missing] != ResultOf(node)[place.axis]) return;
    place.axis -= missing;
    VisitInput(node, input, std::move(place));
  }

  // ---- products with known weights ----

  bool HasWeights(const Node& node) const {
    const ConstantPtr weights = Known(node, 1);
    if (weights == nullptr || Known(node, 0) != nullptr || weights->type.dtype != ir::DType::kF32)
      return false;
    const OpCall call = MakeCall(graph_, node);
    if (node.op == "MatMul")
      return weights->type.shape.size() == 2 && call.Int("transpose_a", 0) == 0;
    const bool convolves = node.op == "Conv" || node.op == "ConvTranspose";
    return convolves && call.String("layout", "nchw") == "nchw" &&
           (!Has(node, 2) || Known(node, 2) != nullptr);
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
    return node.op == "MatMul" ? ResultOf(node).size() - 1 : 1;
  }
  /// A dimension of the weights.
  size_t ColumnAxis(const Node& node) const {
    const bool rows_first =
        node.op == "MatMul" ? MakeCall(graph_, node).Int("transpose_b", 0) == 0 : node.op != "Conv";
    return rows_first ? 1 : 0;
  }

  bool MakeBy(const Node& node, const ChannelPlace& place) {
    if (!IsDepthwise(node) && !IsWhole(node)) return false;
    if (Has(node, 2)) VisitInput(node, 2, {0, place.inner, place.ids});
    if (IsDepthwise(node)) {
      if (place.inner != 1) return false;
      trace_.counting.push_back(IdOf(node));
      trace_.constants.push_back({IdOf(node), 1, {0, 1, place.ids}});
      Visit(node.inputs[0], place);
    } else {
      trace_.makers.push_back({IdOf(node), 1, {ColumnAxis(node), place.inner, place.ids}});
    }
    return true;
  }

  // ---- nodes between them ----

  bool Into(const Node& node, const ChannelPlace& place) {
    if (node.outputs.size() != 1 || !Has(node, 0)) return false;
    const OpCall call = MakeCall(graph_, node);
    if (HasWeights(node)) {
      if (place.axis == ChannelAxis(node)) return MakeBy(node, place);
      if (node.op == "MatMul") Visit(node.inputs[0], place);
      return node.op == "MatMul";
    }
    if (node.op == "MatMul") return IntoProduct(node, call, place);
    if (node.op == "Binary" || node.op == "Select") {
      for (size_t k = 0; k < node.inputs.size(); ++k) VisitOperand(node, k, place);
      return true;
    }
    if (node.op == "Concat") return IntoConcat(node, call, place);
    if (node.op == "Slice") return IntoSlice(node, call, place);
    if (node.op == "Pad") return IntoPad(node, call, place);
    if (node.op == "Gather") {
      const std::optional<size_t> axis = ThroughGather(node, call, place.axis, Direction::kInto);
      if (axis) VisitInput(node, 0, {*axis, place.inner, place.ids});
      return axis.has_value();
    }
    if (node.op == "Reshape") {
      auto at = Reshaped(ResultOf(node), ShapeOf(node.inputs[0]), place);
      if (!at) return false;
      trace_.counting.push_back(IdOf(node));
      VisitInput(node, 0, *std::move(at));
      return true;
    }
    if (node.op == "Transpose") {
      const auto axis = static_cast<size_t>(call.Ints("perm")[place.axis]);
      VisitInput(node, 0, {axis, place.inner, place.ids});
      return true;
    }
    if (!KeepsDimension(node, call, place.axis)) return false;
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (Has(node, k)) VisitOperand(node, k, place);
    return true;
  }

  /// A node whose places along a dimension are computed each from the same one of its input.
  bool KeepsDimension(const Node& node, const OpCall& call, size_t axis) const {
    const auto rank = static_cast<int64_t>(ShapeOf(node.inputs[0]).size());
    if (node.op == "Unary" || node.op == "Activation") return true;
    if (node.op == "Pool") return axis <= 1 && call.String("layout", "nchw") == "nchw";
    if (node.op == "Softmax")
      return (call.Int("axis", -1) + rank) % rank != static_cast<int64_t>(axis);
    const std::string kind = call.String("kind", "");
    const bool reduces = node.op == "Reduce" && call.Int("keepdims", 1) != 0;
    if (!reduces && !(node.op == "Normalise" && (kind == "layer" || kind == "rms"))) return false;
    return std::ranges::none_of(call.Ints("axes"), [&](int64_t each) {
      return (each + rank) % rank == static_cast<int64_t>(axis);
    });
  }

  /// A product of two computed values keeps rows, columns and what stands before both.
  bool IntoProduct(const Node& node, const OpCall& call, const ChannelPlace& place) {
    const size_t rank = ResultOf(node).size();
    if (node.inputs.size() != 2 || ShapeOf(node.inputs[0]).size() < 2 ||
        ShapeOf(node.inputs[1]).size() < 2)
      return false;
    if (place.axis + 2 < rank) {
      for (const size_t k : {size_t{0}, size_t{1}}) VisitOperand(node, k, place);
      return true;
    }
    const size_t input = place.axis + 2 == rank ? 0 : 1;
    const bool turned = call.Int(input == 0 ? "transpose_a" : "transpose_b", 0) != 0;
    const size_t own = ShapeOf(node.inputs[input]).size();
    VisitInput(node, input, {(input == 0) == turned ? own - 1 : own - 2, place.inner, place.ids});
    return true;
  }

  /// Blocks of a dimension of `inner` places; -1 where they are cut.
  static int64_t Blocks(int64_t extent, int64_t inner) {
    return extent % inner == 0 ? extent / inner : -1;
  }
  static Ids Part(const Ids& ids, int64_t first, int64_t count) {
    return {ids.begin() + first, ids.begin() + first + count};
  }

  static size_t AxisOf(const OpCall& call) {
    const auto rank = static_cast<int64_t>(call.inputs[0].type.shape.size());
    return static_cast<size_t>((call.Int("axis", 0) + rank) % rank);
  }

  bool IntoConcat(const Node& node, const OpCall& call, const ChannelPlace& place) {
    if (AxisOf(call) != place.axis) {
      for (size_t k = 0; k < node.inputs.size(); ++k) VisitInput(node, k, place);
      return true;
    }
    for (const ValueId input : node.inputs)
      if (Blocks(ShapeOf(input)[place.axis], place.inner) < 0) return false;
    int64_t first = 0;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const int64_t count = ShapeOf(node.inputs[k])[place.axis] / place.inner;
      VisitInput(node, k, {place.axis, place.inner, Part(place.ids, first, count)});
      first += count;
    }
    return true;
  }

  /// The channels of a tensor that has these at `first`, and others around.
  Ids Around(const Ids& ids, int64_t first, int64_t count) {
    Ids all = NewIds(count);
    std::ranges::copy(ids, all.begin() + first);
    return all;
  }

  bool IntoSlice(const Node& node, const OpCall& call, const ChannelPlace& place) {
    const int64_t whole = ShapeOf(node.inputs[0])[place.axis],
                  start = call.Ints("starts")[place.axis];
    if (call.Ints("sizes")[place.axis] == whole && call.Ints("steps")[place.axis] == 1) {
      VisitInput(node, 0, place);
      return true;
    }
    const int64_t count = Blocks(whole, place.inner), first = Blocks(start, place.inner);
    if (call.Ints("steps")[place.axis] != 1 || count < 0 || first < 0) return false;
    trace_.counting.push_back(IdOf(node));
    VisitInput(node, 0, {place.axis, place.inner, Around(place.ids, first, count)});
    return true;
  }

  /// Blocks of what is put before and behind a dimension; nothing where they cannot be told.
  static std::optional<std::pair<int64_t, int64_t>> Padding(const OpCall& call,
                                                            const ChannelPlace& place) {
    const int64_t begin = call.Ints("begin")[place.axis], end = call.Ints("end")[place.axis];
    const bool constant = call.String("mode", "constant") == "constant";
    if (begin == 0 && end == 0) return std::pair(begin, end);
    const int64_t first = Blocks(begin, place.inner), last = Blocks(end, place.inner);
    if (!constant || begin < 0 || end < 0 || first < 0 || last < 0) return std::nullopt;
    return std::pair(first, last);
  }

  bool IntoPad(const Node& node, const OpCall& call, const ChannelPlace& place) {
    const auto padding = Padding(call, place);
    if (!padding) return false;
    trace_.counting.push_back(IdOf(node));
    const auto count = static_cast<int64_t>(place.ids.size()) - padding->first - padding->second;
    VisitInput(node, 0, {place.axis, place.inner, Part(place.ids, padding->first, count)});
    return true;
  }

  enum class Direction : uint8_t { kInto, kOutOf };
  /// The dimension of the input for one of the output, or the other way round, of a Gather that
  /// known indices make along another one.
  std::optional<size_t> ThroughGather(const Node& node, const OpCall& call, size_t axis,
                                      Direction direction) const {
    if (Known(node, 1) == nullptr) return std::nullopt;
    const auto gathered = AxisOf(call);
    const size_t wide = ShapeOf(node.inputs[1]).size();
    if (axis < gathered) return axis;
    if (direction == Direction::kOutOf)
      return axis == gathered ? std::nullopt : std::optional(axis + wide - 1);
    return axis < gathered + wide ? std::nullopt : std::optional(axis + 1 - wide);
  }

  /// Where channels of a reshaped tensor stand. Several of them may be one from now on: those that
  /// stand at the same place of different parts.
  std::optional<ChannelPlace> Reshaped(const Shape& from, const Shape& to,
                                       const ChannelPlace& place) {
    const auto count = static_cast<int64_t>(place.ids.size());
    const ReshapedChannels reshaped = ReshapeChannels(from, to, place.axis, place.inner);
    if (reshaped.count < count && trace_.together == 0) trace_.together = reshaped.together;
    if (reshaped.count == 0) return std::nullopt;
    ChannelPlace at{reshaped.axis, reshaped.inner, {}};
    for (int64_t k = 0; k < reshaped.count; ++k)
      at.ids.push_back(place.ids[static_cast<size_t>(k % count)]);
    for (int64_t k = reshaped.count; k < count; ++k) {
      const int same = at.ids[static_cast<size_t>(k % reshaped.count)];
      same_[Root(place.ids[static_cast<size_t>(k)])] = Root(same);
    }
    return at;
  }

  bool OutOf(const Node& node, ValueId value, const ChannelPlace& place) {
    for (size_t k = 0; k < node.inputs.size(); ++k)
      if (node.inputs[k] == value && !OutOf(node, k, place)) return false;
    return true;
  }

  bool OutOf(const Node& node, size_t input, const ChannelPlace& place) {
    if (node.outputs.size() != 1) return false;
    const OpCall call = MakeCall(graph_, node);
    ChannelPlace at = place;
    if (HasWeights(node)) {
      if (input != 0) return false;
      if (place.axis == ChannelAxis(node) && !IsDepthwise(node)) {
        if (!IsWhole(node)) return false;
        trace_.readers.push_back({IdOf(node), 1, {1 - ColumnAxis(node), place.inner, place.ids}});
        return true;
      }
      if (node.op != "MatMul" && (place.axis != 1 || node.op != "Conv")) return false;
    } else if (node.op == "MatMul") {
      return OutOfProduct(node, call, input, place);
    } else if (node.op == "Concat") {
      return OutOfConcat(node, call, input, place);
    } else if (node.op == "Reshape") {
      auto reshaped = Reshaped(ShapeOf(node.inputs[0]), ResultOf(node), place);
      if (!reshaped) return false;
      at = *std::move(reshaped);
    } else if (node.op == "Transpose") {
      const Shape perm = call.Ints("perm");
      at.axis = static_cast<size_t>(std::ranges::find(perm, static_cast<int64_t>(place.axis)) -
                                    perm.begin());
    } else if (node.op == "Slice") {
      return OutOfSlice(node, call, place);
    } else if (node.op == "Pad") {
      const auto padding = Padding(call, place);
      if (!padding || input != 0) return false;
      const auto count = static_cast<int64_t>(place.ids.size());
      at.ids = Around(place.ids, padding->first, count + padding->first + padding->second);
    } else if (node.op == "Gather") {
      const std::optional<size_t> axis = ThroughGather(node, call, place.axis, Direction::kOutOf);
      if (!axis || input != 0) return false;
      at.axis = *axis;
    } else {
      at.axis += ResultOf(node).size() - ShapeOf(node.inputs[input]).size();
    }
    if (at.axis >= ResultOf(node).size()) return false;
    Visit(node.outputs[0], std::move(at));
    return true;
  }

  bool OutOfProduct(const Node& node, const OpCall& call, size_t input, ChannelPlace at) {
    const Shape &from = ShapeOf(node.inputs[input]), &to = ResultOf(node);
    if (input > 1) return false;
    if (at.axis + 2 >= from.size()) {
      const bool turned = call.Int(input == 0 ? "transpose_a" : "transpose_b", 0) != 0;
      const bool summed = (at.axis + 1 == from.size()) == ((input == 0) != turned);
      if (summed) return false;
      at.axis = input == 0 ? to.size() - 2 : to.size() - 1;
    } else {
      at.axis += to.size() - from.size();
    }
    Visit(node.outputs[0], std::move(at));
    return true;
  }

  bool OutOfConcat(const Node& node, const OpCall& call, size_t input, ChannelPlace at) {
    if (AxisOf(call) == at.axis) {
      const int64_t count = Blocks(ResultOf(node)[at.axis], at.inner);
      int64_t before = 0;
      for (size_t k = 0; k < input; ++k) before += ShapeOf(node.inputs[k])[at.axis];
      const int64_t first = Blocks(before, at.inner);
      if (count < 0 || first < 0) return false;
      at.ids = Around(at.ids, first, count);
    }
    Visit(node.outputs[0], std::move(at));
    return true;
  }

  bool OutOfSlice(const Node& node, const OpCall& call, ChannelPlace at) {
    const int64_t size = call.Ints("sizes")[at.axis], step = call.Ints("steps")[at.axis];
    if (size != ShapeOf(node.inputs[0])[at.axis] || step != 1) {
      const int64_t first = Blocks(call.Ints("starts")[at.axis], at.inner);
      const int64_t count = Blocks(size, at.inner);
      if (step != 1 || first < 0 || count < 0) return false;
      trace_.counting.push_back(IdOf(node));
      at.ids = Part(at.ids, first, count);
    }
    Visit(node.outputs[0], std::move(at));
    return true;
  }

  const Graph& graph_;
  const std::vector<std::vector<NodeId>>& readers_;
  const std::vector<bool>& is_output_;
  ChannelTrace trace_;
  std::vector<ValueId> open_;
  Ids same_;  ///< by channel: another one that it is the same as, or itself
  std::map<int, ChannelEnd> ends_;
};

}  // namespace

std::vector<int64_t> PlacesLeft(const ChannelPlace& place, const std::vector<bool>& keep) {
  std::vector<int64_t> places;
  for (size_t k = 0; k < place.ids.size(); ++k) {
    if (!keep[static_cast<size_t>(place.ids[k])]) continue;
    for (int64_t i = 0; i < place.inner; ++i)
      places.push_back(static_cast<int64_t>(k) * place.inner + i);
  }
  return places;
}

int64_t NumLeft(const ChannelPlace& place, const std::vector<bool>& keep, size_t first,
                size_t end) {
  int64_t left = 0;
  for (size_t k = first; k < end; ++k)
    if (keep[static_cast<size_t>(place.ids[k])]) left += place.inner;
  return left;
}

ChannelTracer::ChannelTracer(const Graph& graph)
    : graph_(graph), readers_(graph.Readers()), is_output_(graph.values.size()) {
  for (const ValueId output : graph.outputs) is_output_[output] = true;
}

std::optional<ChannelTrace> ChannelTracer::TraceFrom(NodeId reader, int64_t inner) const {
  const Node& node = graph_.nodes[reader];
  if ((node.op != "MatMul" && node.op != "Conv" && node.op != "ConvTranspose") ||
      node.inputs.size() < 2)
    return std::nullopt;
  const Value& weights = graph_.values[node.inputs[1]];
  const Value& data = graph_.values[node.inputs[0]];
  if (weights.constant == nullptr || data.producer < 0 || data.type.shape.size() < 2)
    return std::nullopt;
  const size_t axis = node.op == "MatMul" ? data.type.shape.size() - 1 : 1;
  if (data.type.shape[axis] % inner != 0) return std::nullopt;
  ChannelTrace trace = Tracing(graph_, readers_, is_output_).Run(node.inputs[0], axis, inner);
  const bool reads =
      std::ranges::find(trace.readers, reader, &ChannelConstant::node) != trace.readers.end();
  return reads ? std::optional(std::move(trace)) : std::nullopt;
}

}  // namespace hone::graph
