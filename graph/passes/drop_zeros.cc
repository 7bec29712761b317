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
/// known.
class ConstantChannels {
 public:
  ConstantChannels(const Graph& graph, const ChannelTrace& trace) : graph_(graph), trace_(trace) {
    for (const ChannelConstant& each : trace.makers) makers_[each.node] = each.place;
    std::set<NodeId> nodes;
    for (const auto& [value, place] : trace.values) nodes.insert(graph.values[value].producer);
    for (const NodeId node : nodes) numbers_[graph.nodes[node].outputs[0]] = Of(node);
  }

  const std::vector<double>& At(ValueId value) const { return numbers_.at(value); }

 private:
  using Numbers = std::vector<double>;

  Numbers Of(NodeId id) const {
    const Node& node = graph_.nodes[id];
    if (const auto maker = makers_.find(id); maker != makers_.end())
      return Made(node, maker->second);
    const std::string fn = MakeCall(graph_, node).String("fn", "");
    if (node.op == "Transpose" || node.op == "Reshape") return Operand(id, 0);
    if (node.op == "Conv") return Biased(id);
    if (node.op == "Binary" || node.op == "MatMul") {
      const Numbers a = Operand(id, 0), b = Operand(id, 1);
      Numbers numbers;
      for (size_t c = 0; c < a.size(); ++c)
        numbers.push_back(Applied(node.op == "MatMul" ? "mul" : fn, a[c], b[c]));
      if (node.op == "MatMul") OnlyZeros(numbers);
      return numbers;
    }
    if (node.op == "Softmax" || !KeepsZero(node.op, fn)) return Unknown();
    Numbers numbers = Operand(id, 0);
    OnlyZeros(numbers);
    return numbers;
  }

  Numbers Unknown() const { return Numbers(static_cast<size_t>(trace_.channels), kUnknown); }
  static void OnlyZeros(Numbers& numbers) {
    for (double& number : numbers)
      if (number != 0) number = kUnknown;
  }

  Numbers Operand(NodeId id, size_t input) const {
    const ValueId value = graph_.nodes[id].inputs[input];
    if (const auto it = numbers_.find(value); it != numbers_.end()) return it->second;
    const ConstantPtr& data = graph_.values[value].constant;
    if (data == nullptr) return Unknown();
    for (const ChannelConstant& each : trace_.constants)
      if (each.node == id && each.input == input) return NumbersAlong(*data, each.place);
    if (data->type.NumElements() != 1) return Unknown();
    return Numbers(static_cast<size_t>(trace_.channels), data->DoubleAt(0));
  }

  Numbers Bias(const Node& node, int64_t inner) const {
    if (node.inputs.size() < 3 || node.inputs[2] == kNoValue)
      return Numbers(static_cast<size_t>(trace_.channels), 0.0);
    return NumbersAlong(*graph_.values[node.inputs[2]].constant, {0, inner});
  }

  Numbers Made(const Node& node, const ChannelPlace& place) const {
    const std::vector<bool> written = NonZeroAlong(*graph_.values[node.inputs[1]].constant, place);
    Numbers numbers = Bias(node, place.inner);
    for (size_t c = 0; c < numbers.size(); ++c)
      if (written[c]) numbers[c] = kUnknown;
    return numbers;
  }

  /// A depthwise convolution, whose borders are zeros too.
  Numbers Biased(NodeId id) const {
    const Numbers data = Operand(id, 0);
    Numbers numbers = Bias(graph_.nodes[id], 1);
    for (size_t c = 0; c < numbers.size(); ++c)
      if (data[c] != 0) numbers[c] = kUnknown;
    return numbers;
  }

  const Graph& graph_;
  const ChannelTrace& trace_;
  std::map<NodeId, ChannelPlace> makers_;
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
        const std::optional<ChannelTrace> trace = tracer_.TraceFrom(id);
        if (!trace) continue;
        for (const ChannelConstant& reader : trace->readers) seen.insert(reader.node);
        const std::vector<int64_t> keep = ChannelsToKeep(*trace);
        if (static_cast<int64_t>(keep.size()) == trace->channels) continue;
        Apply(*trace, keep);
        ++changes;
      }
    }
    return changes;
  }

 private:
  std::vector<int64_t> ChannelsToKeep(const ChannelTrace& trace) const {
    const ConstantChannels constants(graph_, trace);
    std::vector<bool> read(static_cast<size_t>(trace.channels));
    for (const ChannelConstant& reader : trace.readers) {
      const Node& node = graph_.nodes[reader.node];
      const std::vector<bool> own =
          NonZeroAlong(*graph_.values[node.inputs[1]].constant, reader.place);
      const std::vector<double>& numbers = constants.At(node.inputs[0]);
      for (size_t c = 0; c < read.size(); ++c)
        if (own[c] && numbers[c] != 0) read[c] = true;
    }
    std::vector<int64_t> keep;
    for (size_t c = 0; c < read.size(); ++c)
      if (read[c]) keep.push_back(static_cast<int64_t>(c));
    if (keep.empty()) keep.push_back(0);
    return keep;
  }

  void Slice(const ChannelConstant& constant, const std::vector<int64_t>& keep) {
    std::vector<int64_t> places;
    for (const int64_t channel : keep)
      for (int64_t i = 0; i < constant.place.inner; ++i)
        places.push_back(channel * constant.place.inner + i);
    const ConstantPtr old =
        graph_.values[graph_.nodes[constant.node].inputs[constant.input]].constant;
    const ValueId made = graph_.AddConstant(Sliced(*old, constant.place.axis, places));
    graph_.nodes[constant.node].inputs[constant.input] = made;
  }

  void Apply(const ChannelTrace& trace, const std::vector<int64_t>& keep) {
    for (const auto* constants : {&trace.makers, &trace.readers, &trace.constants})
      for (const ChannelConstant& constant : *constants) Slice(constant, keep);
    const auto left = static_cast<int64_t>(keep.size());
    for (const auto& [value, place] : trace.values)
      graph_.values[value].type.shape[place.axis] = left * place.inner;
    for (const NodeId node : trace.depthwise) graph_.nodes[node].attributes["group"] = left;
    for (const NodeId id : trace.reshapes) {
      Node& node = graph_.nodes[id];
      node.attributes["shape"] = graph_.values[node.outputs[0]].type.shape;
    }
  }

  Graph& graph_;
  const ChannelTracer tracer_;
};

}  // namespace

absl::StatusOr<int> DropZeros(Graph& graph, const PassContext&) { return ZeroDropper(graph).Run(); }

}  // namespace hone::graph
