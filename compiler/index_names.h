#pragma once

#include <vector>

#include "graph/graph.h"
#include "graph/group_workload.h"
#include "graph/grouping.h"
#include "ir/plan.h"

namespace hone::compiler {

/// The model's words for each input of a group's Workload whose elements are indices, by input: the
/// node that looks them up, and the value. `step` of a result is not set.
std::vector<ir::PlanName> IndexNames(const graph::Graph& graph, const graph::Group& group,
                                     const graph::GroupWorkload& workload);

}  // namespace hone::compiler
