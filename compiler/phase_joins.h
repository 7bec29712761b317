#pragma once

#include <vector>

#include "ir/plan.h"

namespace hone::compiler {

/// Which phases need no barrier before them, from where each iteration of them reads and writes
/// (ArtifactPhase::accesses of plan.kernels) and where the plan put that memory. Joined phases take
/// turns on each part, so they are joined only while the constants that every part of them reads
/// stay in a level-2 cache. By step and phase.
std::vector<ir::PlanJoin> FindJoins(const ir::Plan& plan);

}  // namespace hone::compiler
