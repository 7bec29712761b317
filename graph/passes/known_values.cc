#include "graph/passes/known_values.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "graph/group_workload.h"
#include "graph/op.h"

namespace hone::graph {
namespace {

// The same bytes under another shape.
ConstantPtr Relabelled(const ConstantPtr& data, const TensorType& type) {
  auto relabelled = std::make_shared<TensorData>(*data);
  relabelled->type = type;
  return relabelled;
}

bool IsExpressible(const Node& node) {
  const OpDefinition* definition = FindOp(node.op);
  return definition != nullptr && definition->express != nullptr;
}

}  // namespace

absl::StatusOr<KnownResults> ComputeNode(const Graph& graph, NodeId id, Evaluator& evaluator) {
  KnownResults results;
  const Node& node = graph.nodes[id];
  if (node.op == "Reshape") {
    const ConstantPtr& data = graph.values[node.inputs[0]].constant;
    results.emplace_back(node.outputs[0], Relabelled(data, graph.values[node.outputs[0]].type));
    return results;
  }
  HONE_ASSIGN_OR_RETURN(GroupWorkload group, BuildNodeWorkload(graph, id));
  std::vector<ConstantPtr> tensors;
  for (ValueId value : group.inputs) tensors.push_back(graph.values[value].constant);
  for (ValueId value : group.constants) tensors.push_back(graph.values[value].constant);
  HONE_ASSIGN_OR_RETURN(std::vector<ConstantPtr> outputs,
                        evaluator.Evaluate(group.workload, tensors));
  HONE_CHECK(outputs.size() == group.outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    results.emplace_back(group.outputs[k],
                         Relabelled(outputs[k], graph.values[group.outputs[k]].type));
  }
  return results;
}

KnownValues::KnownValues(const Graph& graph, Evaluator& evaluator)
    : graph_(graph), evaluator_(evaluator), known_(graph.values.size()) {
  for (size_t v = 0; v < graph.values.size(); ++v) known_[v] = graph.values[v].constant != nullptr;
  for (const Node& node : graph.nodes) {
    const bool known = IsExpressible(node) && std::ranges::all_of(node.inputs, [&](ValueId input) {
                         return input == kNoValue || known_[static_cast<size_t>(input)];
                       });
    for (ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      known_[static_cast<size_t>(output)] =
          known && graph.values[static_cast<size_t>(output)].type.Bytes() <= kMostBytes;
    }
  }
}

absl::StatusOr<ConstantPtr> KnownValues::ValueOf(ValueId id) {
  if (!IsKnown(id)) return nullptr;
  if (const ConstantPtr& own = graph_.values[static_cast<size_t>(id)].constant) return own;
  if (values_.values.empty()) values_ = graph_;
  std::set<NodeId> nodes;
  std::vector<ValueId> open = {id};
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    const auto& made = values_.values[static_cast<size_t>(value)];
    if (made.constant != nullptr || !nodes.insert(made.producer).second) continue;
    for (ValueId input : graph_.nodes[static_cast<size_t>(made.producer)].inputs) {
      if (input != kNoValue) open.push_back(input);
    }
  }
  if (nodes.size() > kMostNodes) return nullptr;
  for (NodeId node : nodes) {
    HONE_ASSIGN_OR_RETURN(KnownResults results, ComputeNode(values_, node, evaluator_));
    for (auto& [value, data] : results)
      values_.values[static_cast<size_t>(value)].constant = std::move(data);
  }
  return values_.values[static_cast<size_t>(id)].constant;
}

}  // namespace hone::graph
