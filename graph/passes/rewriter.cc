#include "graph/passes/rewriter.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "graph/op.h"

namespace hone::graph {

Rewriter::Rewriter(Graph& graph) : graph_(graph), old_nodes_(std::move(graph.nodes)) {
  graph_.nodes.clear();
  replaced_.resize(graph_.values.size());
  for (size_t v = 0; v < replaced_.size(); ++v) replaced_[v] = static_cast<ValueId>(v);
}

ValueId Rewriter::Mapped(ValueId value) const {
  // Values made during the walk are nobody's replacement.
  if (value == kNoValue || value >= static_cast<ValueId>(replaced_.size())) return value;
  return replaced_[value];
}

Node Rewriter::Mapped(const Node& node) const {
  Node mapped = node;
  for (ValueId& input : mapped.inputs) input = Mapped(input);
  return mapped;
}

void Rewriter::Keep(Node node) {
  node = Mapped(node);
  const NodeId id = static_cast<NodeId>(graph_.nodes.size());
  for (ValueId output : node.outputs) {
    if (output != kNoValue) graph_.values[output].producer = id;
  }
  graph_.nodes.push_back(std::move(node));
}

absl::StatusOr<ValueId> Rewriter::Add(Node node) {
  HONE_ASSIGN_OR_RETURN(std::vector<ValueId> outputs, AppendNode(graph_, std::move(node)));
  return outputs[0];
}

absl::StatusOr<ValueId> Rewriter::Add(std::string op, std::string origin,
                                      std::vector<ValueId> inputs, Attributes attributes) {
  Node node;
  node.op = std::move(op);
  node.origin = std::move(origin);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  return Add(std::move(node));
}

bool Rewriter::MayReplace(ValueId value, ValueId by) const {
  if (std::ranges::find(graph_.outputs, value) == graph_.outputs.end()) return true;
  for (ValueId output : graph_.outputs) {
    if (Mapped(output) == by) return false;
  }
  return graph_.values[by].producer >= 0;
}

void Rewriter::Replace(ValueId value, ValueId by) {
  HONE_CHECK(graph_.values[value].type == graph_.values[by].type)
      << "a value of " << ToText(graph_.values[value].type) << " replaced by one of "
      << ToText(graph_.values[by].type);
  for (ValueId& other : replaced_) {
    if (other == value) other = by;
  }
}

const Node* Rewriter::ProducerOf(ValueId id, std::string_view op, std::string_view fn) const {
  if (id == kNoValue || graph_.values[id].producer < 0) return nullptr;
  const Node& node = graph_.nodes[graph_.values[id].producer];
  if (node.op != op) return nullptr;
  if (!fn.empty() && MakeCall(graph_, node).String("fn", "") != fn) return nullptr;
  return &node;
}

std::optional<double> Rewriter::Uniform(ValueId id) const {
  constexpr int64_t kLongest = 1 << 20;
  const ConstantPtr& data = id == kNoValue ? nullptr : graph_.values[id].constant;
  if (data == nullptr || data->type.NumElements() < 1 || data->type.NumElements() > kLongest)
    return std::nullopt;
  const double first = data->DoubleAt(0);
  for (int64_t i = 1; i < data->type.NumElements(); ++i) {
    if (data->DoubleAt(i) != first) return std::nullopt;
  }
  return first;
}

absl::Status Rewriter::Finish() {
  for (ValueId& output : graph_.outputs) {
    const ValueId now = Mapped(output);
    if (now == output) continue;
    const NodeId producer = graph_.values[now].producer;
    const bool is_output = std::ranges::find(graph_.outputs, now) != graph_.outputs.end();
    if (producer < 0 || is_output) {
      // An input, a constant or another output under a second name: a relabelling that the plan
      // copies.
      Node same;
      same.op = "Reshape";
      same.origin = graph_.values[output].name;
      same.inputs = {now};
      same.attributes["shape"] = graph_.values[output].type.shape;
      same.outputs = {output};
      graph_.values[output].producer = static_cast<NodeId>(graph_.nodes.size());
      graph_.nodes.push_back(std::move(same));
      continue;
    }
    // The producer writes the output's own value, so that its name stays.
    for (Node& node : graph_.nodes) {
      std::ranges::replace(node.inputs, now, output);
      std::ranges::replace(node.outputs, now, output);
    }
    graph_.values[output].producer = producer;
    graph_.values[now].producer = -1;
    for (ValueId& other : replaced_) {
      if (other == now) other = output;
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::graph
