#pragma once

#include <vector>

#include "compiler/memory_plan.h"
#include "compiler/step_order.h"

// Where a model forks into branches that do not depend on each other, and meets again: the towers
// of an Inception block, the shortcut of a residual one.
namespace hone::compiler {

/// What a step takes, roughly.
struct StepTime {
  double alone_ns = 0;  ///< on one thread
  int threads = 1;      ///< that can share it evenly
};

/// Forks whose branches, beside each other on `threads` threads, take at least 3 % less than in
/// turn: those with a step that leaves threads idle, or many short ones. A fork is what lies
/// between a step and the next that all of its paths meet in; each piece that nothing connects
/// there is a branch. No step is in two forks; of several that have one, that which gains most
/// stays. The longest branch of a fork comes first. Steps of a branch stand in the order of their
/// numbers, which must be one that works. Deterministic; O(steps²) at worst, no forks among
/// thousands of steps.
std::vector<MemoryFork> FindBranches(const StepGraph& steps, const std::vector<StepTime>& times,
                                     int threads);

}  // namespace hone::compiler
