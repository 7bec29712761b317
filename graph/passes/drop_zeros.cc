#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/constant_slice.h"
#include "graph/op.h"
#include "graph/passes/channel_trace.h"
#include "graph/passes/passes.h"

namespace hone::graph {
namespace {

using ir::DType;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// By channel: whether anything there is not zero. Dense weights are hardly read.
std::vector<bool> NonZeroAlong(const TensorData& data, const ChannelPlace& place) {
  int64_t outer = 1, inner = place.inner;
  for (size_t d = 0; d < place.axis; ++d) outer *= data.type.shape[d];
  for (size_t d = place.axis + 1; d < data.type.shape.size(); ++d) inner *= data.type.shape[d];
  const int64_t count = data.type.shape[place.axis] / place.inner;
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

/// By channel: the one number that a constant has there, or NaN.
std::vector<double> NumbersAlong(const TensorData& data, const ChannelPlace& place) {
  int64_t outer = 1, inner = place.inner;
  for (size_t d = 0; d < place.axis; ++d) outer *= data.type.shape[d];
  for (size_t d = place.axis + 1; d < data.type.shape.size(); ++d) inner *= data.type.shape[d];
  const int64_t count = data.type.shape[place.axis] / place.inner;
  std::vector<double> numbers;
  for (int64_t k = 0; k < count; ++k) {
    const double first = data.DoubleAt(k * inner);
    bool same = true;
    for (int64_t i = 0; same && i < outer * inner; ++i)
      same = data.DoubleAt((i / inner * count + k) * inner + i % inner) == first;
    numbers.push_back(same ? first : kUnknown);
  }
  return numbers;
}

bool KeepsZero(const std::string& op, const std::string& fn) {
  static constexpr std::string_view kFunctions[] = {
      "neg",  "abs",       "sqrt",       "sin", "tan",  "tanh", "erf", "gelu",
      "silu", "gelu_tanh", "hard_swish", "sum", "mean", "max",  "min"};
  return op == "Pool" || std::ranges::find(kFunctions, fn) != std::end(kFunctions);
}

double Applied(const std::string& fn, double a, double b) {
  if (fn == "mul" && (a == 0 || b == 0)) return 0;
  if (std::isnan(a) || std::isnan(b)) return kUnknown;
  if (fn == "add") return a + b;
  if (fn == "sub") return a - b;
  if (fn == "mul") return a * b;
  if (fn == "max") return std::max(a, b);
  if (fn == "min") return std::min(a, b);
  return kUnknown;
}

/// What a traced value has in channels that no weights reach: one number, or NaN where that is not
/// known. By place of the channels, as ChannelPlace::ids.
class ConstantChannels {
 public:
  ConstantChannels(const Graph& graph, const ChannelTrace& trace) : graph_(graph), trace_(trace) {
    for (const ChannelConstant& each : trace.makers) makers_[each.node] = &each.place;
    std::set<NodeId> nodes;
    for (const auto& [value, place] : trace.values) nodes.insert(graph.values[value].producer);
    for (const NodeId node : nodes) numbers_[graph.nodes[node].outputs[0]] = Of(node);
  }

  const std::vector<double>& At(ValueId value) const { return numbers_.at(value); }

 private:
  using Numbers = std::vector<double>;

  Numbers Of(NodeId id) const {
    const Node& node = graph_.nodes[id];
    const ChannelPlace& place = trace_.values.at(node.outputs[0]);
    const size_t count = place.ids.size();
    if (const auto maker = makers_.find(id); maker != makers_.end())
      return Made(node, *maker->second);
    const OpCall call = MakeCall(graph_, node);
    const std::string fn = call.String("fn", "");
    if (node.op == "Concat") return Joined(id, call, place);
    Numbers a = Operand(id, 0, count);
    if (node.op == "Transpose" || node.op == "Gather") return a;
    if (node.op == "Reshape") return Relabelled(a, count);
    if (node.op == "Slice") return Cut(a, call, place);
    if (node.op == "Pad") return Padded(id, a, call, place);
    if (a.size() != count) return Numbers(count, kUnknown);
    if (node.op == "Conv") return Biased(id, a);
    if (node.op == "Binary" || node.op == "MatMul") {
      const Numbers b = Operand(id, 1, count);
      for (size_t c = 0; c < count; ++c)
        a[c] = Applied(node.op == "MatMul" ? "mul" : fn, a[c], b.size() == count ? b[c] : kUnknown);
      if (node.op == "MatMul") OnlyZeros(a);
      return a;
    }
    if (!KeepsZero(node.op, fn)) return Numbers(count, kUnknown);
    OnlyZeros(a);
    return a;
  }

  static void OnlyZeros(Numbers& numbers) {
    for (double& number : numbers)
      if (number != 0) number = kUnknown;
  }
  static double Same(double a, double b) { return a == b ? a : kUnknown; }

  /// `count`: of what is not traced.
  Numbers Operand(NodeId id, size_t input, size_t count) const {
    const ValueId value = graph_.nodes[id].inputs[input];
    if (const auto it = numbers_.find(value); it != numbers_.end()) return it->second;
    const ConstantPtr& data = graph_.values[value].constant;
    if (data == nullptr) return Numbers(count, kUnknown);
    for (const ChannelConstant& each : trace_.constants)
      if (each.node == id && each.input == input) return NumbersAlong(*data, each.place);
    return Numbers(count, data->type.NumElements() == 1 ? data->DoubleAt(0) : kUnknown);
  }

  Numbers Joined(NodeId id, const OpCall& call, const ChannelPlace& place) const {
    Numbers joined;
    const bool across = !AlongPlace(call, place);
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      const auto count = static_cast<size_t>(call.inputs[k].type.shape[place.axis] / place.inner);
      const Numbers part = Operand(id, k, count);
      if (!across || k == 0) {
        joined.insert(joined.end(), part.begin(), part.end());
      } else {
        for (size_t c = 0; c < joined.size(); ++c) joined[c] = Same(joined[c], part[c]);
      }
    }
    return joined;
  }
  static bool AlongPlace(const OpCall& call, const ChannelPlace& place) {
    const auto rank = static_cast<int64_t>(call.inputs[0].type.shape.size());
    return (call.Int("axis", 0) + rank) % rank == static_cast<int64_t>(place.axis);
  }

  /// As ReshapeChannels.
  static Numbers Relabelled(const Numbers& from, size_t count) {
    Numbers numbers;
    for (size_t k = 0; k < count; ++k) numbers.push_back(from[k % from.size()]);
    for (size_t k = count; k < from.size(); ++k)
      numbers[k % count] = Same(numbers[k % count], from[k]);
    return numbers;
  }

  static Numbers Cut(const Numbers& from, const OpCall& call, const ChannelPlace& place) {
    const int64_t first = call.Ints("starts")[place.axis] / place.inner;
    if (from.size() == place.ids.size()) return from;
    return {from.begin() + first, from.begin() + first + static_cast<int64_t>(place.ids.size())};
  }

  Numbers Padded(NodeId id, const Numbers& from, const OpCall& call,
                 const ChannelPlace& place) const {
    const bool constant = call.String("mode", "constant") == "constant";
    const bool given = graph_.nodes[id].inputs.size() > 1 && graph_.nodes[id].inputs[1] != kNoValue;
    const double border = given ? Operand(id, 1, 1)[0] : 0;
    const std::vector<int64_t> begin = call.Ints("begin"), end = call.Ints("end");
    bool across = false;
    for (size_t d = 0; d < begin.size(); ++d)
      across = across || (d != place.axis && (begin[d] > 0 || end[d] > 0));
    Numbers numbers(place.ids.size(), border);
    const auto first = static_cast<size_t>(begin[place.axis] / place.inner);
    for (size_t k = 0; k < from.size() && first + k < numbers.size(); ++k)
      numbers[first + k] = across && constant ? Same(from[k], border) : from[k];
    return numbers;
  }

  Numbers Bias(const Node& node, const ChannelPlace& place) const {
    if (node.inputs.size() < 3 || node.inputs[2] == kNoValue) return Numbers(place.ids.size(), 0.0);
    return NumbersAlong(*graph_.values[node.inputs[2]].constant, {0, place.inner, place.ids});
  }

  Numbers Made(const Node& node, const ChannelPlace& place) const {
    const std::vector<bool> written = NonZeroAlong(*graph_.values[node.inputs[1]].constant, place);
    Numbers numbers = Bias(node, place);
    for (size_t c = 0; c < numbers.size(); ++c)
      if (written[c]) numbers[c] = kUnknown;
    return numbers;
  }

  /// A depthwise convolution, whose borders are zeros too.
  Numbers Biased(NodeId id, const Numbers& data) const {
    const Node& node = graph_.nodes[id];
    Numbers numbers = Bias(node, trace_.values.at(node.outputs[0]));
    for (size_t c = 0; c < numbers.size(); ++c)
      if (data[c] != 0) numbers[c] = kUnknown;
    return numbers;
  }

  const Graph& graph_;
  const ChannelTrace& trace_;
  std::map<NodeId, const ChannelPlace*> makers_;
  std::map<ValueId, Numbers> numbers_;
};

class ZeroDropper {
 public:
  explicit ZeroDropper(Graph& graph) : graph_(graph), tracer_(graph) {}

  /// What disappears may leave nobody to read what fed it, so until nothing changes.
  int Run() {
    int changes = 0;
    for (int before = -1; before != changes;) {
      before = changes;
      std::set<NodeId> seen;
      for (auto id = static_cast<NodeId>(graph_.nodes.size()); id-- > 0;) {
        if (seen.contains(id)) continue;
        std::optional<ChannelTrace> trace = tracer_.TraceFrom(id, 1);
        if (!trace) continue;
        for (const ChannelConstant& reader : trace->readers) seen.insert(reader.node);
        // Single channels first; then what a reshaping on the way keeps together.
        bool dropped = Drop(*trace);
        if (!dropped && trace->together > 1) {
          trace = tracer_.TraceFrom(id, trace->together);
          dropped = trace && Drop(*trace);
        }
        if (dropped) ++changes;
      }
    }
    return changes;
  }

 private:
  bool Drop(const ChannelTrace& trace) {
    const std::vector<bool> keep = ChannelsToKeep(trace);
    if (std::ranges::find(keep, false) == keep.end()) return false;
    Apply(trace, keep);
    return true;
  }

  std::vector<bool> ChannelsToKeep(const ChannelTrace& trace) const {
    std::vector<bool> keep(static_cast<size_t>(trace.channels));
    for (const auto& [channel, end] : trace.ends) keep[static_cast<size_t>(channel)] = true;
    if (std::ranges::find(keep, false) == keep.end()) return keep;
    const ConstantChannels constants(graph_, trace);
    for (const ChannelConstant& reader : trace.readers) {
      const Node& node = graph_.nodes[reader.node];
      const std::vector<bool> own =
          NonZeroAlong(*graph_.values[node.inputs[1]].constant, reader.place);
      const std::vector<double>& numbers = constants.At(node.inputs[0]);
      for (size_t k = 0; k < own.size(); ++k)
        if (own[k] && numbers[k] != 0) keep[static_cast<size_t>(reader.place.ids[k])] = true;
    }
    // No tensor without elements.
    const auto keep_one = [&](const ChannelPlace& place) {
      const auto kept = [&](int id) { return keep[static_cast<size_t>(id)]; };
      if (std::ranges::none_of(place.ids, kept)) keep[static_cast<size_t>(place.ids[0])] = true;
    };
    for (const auto& [value, place] : trace.values) keep_one(place);
    for (const ChannelConstant& constant : trace.constants) keep_one(constant.place);
    return keep;
  }

  void Slice(const ChannelConstant& constant, const std::vector<bool>& keep) {
    const ConstantPtr old =
        graph_.values[graph_.nodes[constant.node].inputs[constant.input]].constant;
    const ValueId made =
        graph_.AddConstant(Sliced(*old, constant.place.axis, PlacesLeft(constant.place, keep)));
    graph_.nodes[constant.node].inputs[constant.input] = made;
  }

  void Apply(const ChannelTrace& trace, const std::vector<bool>& keep) {
    for (const auto* constants : {&trace.makers, &trace.readers, &trace.constants})
      for (const ChannelConstant& constant : *constants) Slice(constant, keep);
    for (const NodeId id : trace.counting) Recount(graph_.nodes[id], trace, keep);
    for (const auto& [value, place] : trace.values)
      graph_.values[value].type.shape[place.axis] = NumLeft(place, keep, 0, place.ids.size());
    for (const NodeId id : trace.counting) {
      Node& node = graph_.nodes[id];
      if (node.op == "Reshape")
        node.attributes["shape"] = graph_.values[node.outputs[0]].type.shape;
    }
  }

  /// Before the shapes change.
  void Recount(Node& node, const ChannelTrace& trace, const std::vector<bool>& keep) const {
    const OpCall call = MakeCall(graph_, node);
    const auto from = trace.values.find(node.inputs[0]), to = trace.values.find(node.outputs[0]);
    const auto replace = [&](const char* name, size_t axis, int64_t number) {
      std::vector<int64_t> numbers = call.Ints(name);
      numbers[axis] = number;
      node.attributes[name] = std::move(numbers);
    };
    if (node.op == "Conv" && to != trace.values.end()) {
      node.attributes["group"] = NumLeft(to->second, keep, 0, to->second.ids.size());
    } else if (node.op == "Slice" && from != trace.values.end()) {
      const ChannelPlace& place = from->second;
      const auto first = static_cast<size_t>(call.Ints("starts")[place.axis] / place.inner);
      const auto count = static_cast<size_t>(call.Ints("sizes")[place.axis] / place.inner);
      replace("starts", place.axis, NumLeft(place, keep, 0, first));
      replace("sizes", place.axis, NumLeft(place, keep, first, first + count));
    } else if (node.op == "Pad" && to != trace.values.end()) {
      const ChannelPlace& place = to->second;
      const auto begin = static_cast<size_t>(call.Ints("begin")[place.axis] / place.inner);
      const auto end = static_cast<size_t>(call.Ints("end")[place.axis] / place.inner);
      const size_t all = place.ids.size();
      if (begin + end == 0) return;
      replace("begin", place.axis, NumLeft(place, keep, 0, begin));
      replace("end", place.axis, NumLeft(place, keep, all - end, all));
    }
  }

  Graph& graph_;
  const ChannelTracer tracer_;
};

}  // namespace

absl::StatusOr<int> DropZeros(Graph& graph, const PassContext&) { return ZeroDropper(graph).Run(); }

}  // namespace hone::graph
