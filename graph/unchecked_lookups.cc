#include "graph/unchecked_lookups.h"

#include <algorithm>

#include "base/status.h"
#include "graph/group_workload.h"
#include "ir/checked_index.h"

namespace hone::graph {
namespace {

/// The operators of ops/gather.cc whose second operand is any index.
bool LooksUp(const Node& node) {
  return node.op == "Gather" || node.op == "GatherElements" || node.op == "GatherND";
}

/// Those of a group that makes their indices.
std::vector<NodePair> LookUpsOf(const Graph& graph, const Group& group) {
  std::vector<NodePair> pairs;
  if (group.kind != GroupKind::kKernel) return pairs;
  for (const NodeId n : group.nodes) {
    const Node& node = graph.nodes[n];
    if (!LooksUp(node)) continue;
    const NodeId maker = graph.values[node.inputs[1]].producer;
    if (std::ranges::find(group.nodes, maker) != group.nodes.end()) pairs.emplace_back(maker, n);
  }
  return pairs;
}

}  // namespace

absl::StatusOr<std::vector<NodePair>> UncheckedLookUps(const Graph& graph,
                                                       const std::vector<Group>& groups) {
  std::vector<NodePair> found;
  std::vector<std::vector<NodeId>> readers;
  for (const Group& group : groups) {
    const std::vector<NodePair> pairs = LookUpsOf(graph, group);
    if (pairs.empty()) continue;
    if (readers.empty()) readers = graph.Readers();
    HONE_ASSIGN_OR_RETURN(const GroupWorkload made, BuildWorkload(graph, readers, group));
    if (ir::HasUncheckedIndex(made.workload)) found.insert(found.end(), pairs.begin(), pairs.end());
  }
  return found;
}

}  // namespace hone::graph
