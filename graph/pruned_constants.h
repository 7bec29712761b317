#pragma once

#include "graph/graph.h"
#include "graph/group_workload.h"

namespace hone::graph {

/// States at the weights of matrix products what of them is not zero (ir/kept_panels.h), where that
/// is at most three quarters: of weights that were pruned, that is, and not of others. It depends
/// on the values alone. `group.constants` are values of `graph`.
void StatePanels(const Graph& graph, GroupWorkload& group);

}  // namespace hone::graph
