#pragma once

#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "graph/grouping.h"

namespace hone::graph {

/// The node that makes an index, and the one that looks it up.
using NodePair = std::pair<NodeId, NodeId>;

/// Look-ups whose group computes the index in a way that its kernel cannot check before its loops
/// (ir::HasUncheckedIndex): apart from what makes it, the index is an input of theirs, and checked.
/// Only groups with both are expressed. Errors: those of BuildWorkload.
absl::StatusOr<std::vector<NodePair>> UncheckedLookUps(const Graph& graph,
                                                       const std::vector<Group>& groups);

}  // namespace hone::graph
