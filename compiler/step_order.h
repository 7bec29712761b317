#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "compiler/memory_plan.h"

namespace hone::compiler {

/// A MemoryProblem with aliases resolved: what the search for an order needs.
struct StepGraph {
  std::vector<int> root;                      ///< by tensor: the tensor whose memory it is
  std::vector<int64_t> offset_in_root_bytes;  ///< by tensor
  std::vector<int64_t> root_bytes;            ///< by tensor; aligned; 0 unless a root in the arena
  std::vector<std::vector<int>> touched;      ///< by step: roots in the arena, sorted, each once
  std::vector<std::vector<int>> successors;   ///< by step: steps that must come later
  std::vector<int> num_predecessors;          ///< by step
  std::vector<int> num_touching;              ///< by tensor (root): steps that touch it
};

/// InvalidArgument as PlanMemory's.
absl::StatusOr<StepGraph> MakeStepGraph(const MemoryProblem& problem);

/// Most bytes alive at once when the steps run in this order. A root is alive from the first step
/// that touches it to the last.
int64_t LivePeak(const StepGraph& steps, const std::vector<int>& order);

/// A topological order with a low LivePeak: never above that of the given order 0, 1, 2, …, which
/// is the answer on a tie, and for thousands of steps. Beam search, O(steps² · width) at worst.
std::vector<int> OrderForLowPeak(const StepGraph& steps);

/// An order in which the steps of each fork stand together, branch by branch.
struct ForkedOrder {
  std::vector<int> steps;
  std::vector<ir::PlanFork> forks;  ///< by position in `steps`, in order
};

/// The topological order next to `order`: each fork stands where its first step can, the other
/// steps keep their places. Without any of the forks where they depend on each other in a circle.
ForkedOrder GatherForks(const StepGraph& steps, const std::vector<int>& order,
                        const std::vector<MemoryFork>& forks);

}  // namespace hone::compiler
