#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "ir/target.h"

namespace hone::graph {

enum class GroupKind : uint8_t {
  kKernel,  ///< one Workload, one kernel
  kAlias,  ///< one node whose result is (a part of) its operand's buffer: costs nothing, is never a
           ///< copy
  kConcat,  ///< one node that joins whole values made by kernels: each may be written in place
            ///< through a Binding; where that cannot be, its Workload is a copy
  kExtern,  ///< one node, a routine of the runtime
};

/// Nodes that become one kernel (or none). Convex: no path leaves the group and comes back.
struct Group {
  GroupKind kind = GroupKind::kKernel;
  std::vector<NodeId> nodes;  ///< topological order
  NodeId anchor =
      -1;  ///< the contraction, window, row-wise or scan node that gives the loops, or -1
  int64_t alias_offset = 0;  ///< kAlias: first element of the operand's buffer
};

/// Cuts the graph into groups, in topological order; every node is in exactly one. Decided by index
/// maps and static sizes only. In topological order, each node joins the group of its last producer
/// whose axes it can share. A node that cannot is computed again inside the group of its reader
/// where that is cheap. Every other node starts a group. Depends only on the graph and on the
/// GroupLimits of the target.
absl::StatusOr<std::vector<Group>> GroupNodes(const Graph& graph, const ir::Target& target);

/// `group 3 kernel anchor Conv: Conv %5, Binary %6` one group a line: goldens, `hone inspect`.
std::string ToText(const Graph& graph, const std::vector<Group>& groups);

}  // namespace hone::graph
