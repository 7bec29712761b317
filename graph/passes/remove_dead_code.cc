#include <utility>
#include <vector>

#include "graph/op.h"
#include "graph/passes/passes.h"

namespace hone::graph {

absl::StatusOr<int> RemoveDeadCode(Graph& graph, const PassContext&) {
  std::vector<bool> needed(graph.values.size());
  for (ValueId output : graph.outputs) needed[output] = true;
  std::vector<bool> keep(graph.nodes.size());
  int removed = 0;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    Node& node = graph.nodes[n];
    for (ValueId output : node.outputs) keep[n] = keep[n] || (output != kNoValue && needed[output]);
    if (!keep[n]) {
      ++removed;
      continue;
    }
    for (ValueId input : node.inputs) {
      if (input != kNoValue) needed[input] = true;
    }
  }
  // Outputs that nobody reads need not be made, except by the runtime's routines, which make all.
  int narrowed = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const OpDefinition* definition = FindOp(graph.nodes[n].op);
    if (!keep[n] || (definition != nullptr && !definition->extern_name.empty())) continue;
    std::vector<ValueId>& outputs = graph.nodes[n].outputs;
    for (ValueId& output : outputs) {
      if (output == kNoValue || needed[output]) continue;
      graph.values[output].producer = -1;
      output = kNoValue;
      ++narrowed;
    }
    while (outputs.size() > 1 && outputs.back() == kNoValue) outputs.pop_back();
  }
  if (removed == 0) return narrowed;

  std::vector<Node> old = std::move(graph.nodes);
  graph.nodes.clear();
  for (size_t n = 0; n < old.size(); ++n) {
    const NodeId id = keep[n] ? static_cast<NodeId>(graph.nodes.size()) : -1;
    for (ValueId output : old[n].outputs) {
      if (output != kNoValue) graph.values[output].producer = id;
    }
    if (keep[n]) graph.nodes.push_back(std::move(old[n]));
  }
  return removed + narrowed;
}

}  // namespace hone::graph
