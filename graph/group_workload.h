#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "graph/grouping.h"
#include "ir/workload.h"

namespace hone::graph {

/// A group as a Workload and which values of the graph its tensors are.
struct GroupWorkload {
  ir::Workload workload;           ///< canonical
  std::vector<ValueId> inputs;     ///< by workload.Inputs()
  std::vector<ValueId> constants;  ///< by workload.Constants()
  std::vector<ValueId> outputs;    ///< by workload.Outputs()
};

/// The Stages of the group's nodes, in one Workload: relabellings inlined, what follows the anchor
/// on the anchor's axes. Constants of one element stand in the text, the others are tensors. A
/// float input keeps only the sign of its range, so that equal layers are equal Workloads. Errors
/// name the node whose operator cannot be expressed. Deterministic; equal groups give equal
/// Workloads.
absl::StatusOr<GroupWorkload> BuildWorkload(const Graph& graph, const Group& group);
/// The same with graph.Readers() given: a caller with many groups makes it once.
absl::StatusOr<GroupWorkload> BuildWorkload(const Graph& graph,
                                            const std::vector<std::vector<NodeId>>& readers,
                                            const Group& group);

/// The Stages of one node as its operator's definition gives them, canonical, nothing inlined.
absl::StatusOr<GroupWorkload> BuildNodeWorkload(const Graph& graph, NodeId node);

/// Values made in the group that are read outside it or are outputs of the graph, in topological
/// order. `readers`: graph.Readers().
std::vector<ValueId> GroupOutputs(const Graph& graph,
                                  const std::vector<std::vector<NodeId>>& readers,
                                  const std::vector<NodeId>& nodes);

}  // namespace hone::graph
