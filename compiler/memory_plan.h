#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/plan.h"

namespace hone::compiler {

/// Every offset in the arena is a multiple of this: a cache line, and one AVX-512 vector.
inline constexpr int64_t kArenaAlignmentBytes = 64;

/// Memory that steps read and write.
struct MemoryTensor {
  int64_t bytes = 0;
  /// Another tensor whose memory this one is a part of (reshape: all of it; a concat's operand:
  /// some of it, perhaps strided), or -1. Chains are allowed, cycles are not. Parts that are
  /// written have no element in common.
  int alias_of = -1;
  int64_t alias_offset_bytes = 0;
  /// Lives outside the arena (the caller's inputs and outputs, constants); takes part in the order
  /// only.
  bool external = false;
};

/// One kernel or extern. Workspace is a tensor that only its step writes.
struct MemoryStep {
  std::vector<int> reads;
  std::vector<int> writes;
};

/// Steps that may run at the same time as others: those of one branch beside those of another.
struct MemoryFork {
  std::vector<std::vector<int>> branches;  ///< steps, in the order of their numbers
};

/// Tensors are written once (but parts of one may have different writers). The steps stand in an
/// order that works; a step comes after the writers of all it reads.
struct MemoryProblem {
  std::vector<MemoryTensor> tensors;
  std::vector<MemoryStep> steps;
  /// Without a step in common. No branch depends on another, and nothing outside of a fork lies
  /// between two of its steps (FindBranches).
  std::vector<MemoryFork> forks;
};

struct MemoryPlan {
  std::vector<int> order;             ///< numbers of the steps, in the order of running
  std::vector<ir::PlanFork> forks;    ///< those that stay, by position in `order`
  std::vector<int64_t> offset_bytes;  ///< in the arena, by tensor; 0 where it is external or unused
  int64_t arena_bytes = 0;            ///< the peak
  int64_t live_peak_bytes = 0;  ///< most alive at once: no arena for this order in turn is smaller
  int64_t lower_bound_bytes = 0;  ///< most bytes one step touches: no order and arena is smaller
  int64_t sum_bytes = 0;          ///< of all tensors, as if nothing were shared
};

/// What branches of a fork cost in memory at most, over the same model with all steps in turn.
inline constexpr double kMostForkedArena = 1.1;

/// Orders the steps for a low peak and places the tensors in one arena. Deterministic; the given
/// order stays where no better one is found, because its neighbours find their inputs in the cache.
///
/// Order: a beam search over sets of finished steps. Offsets: greedy best fit in several orders of
/// tensors, the smallest arena wins (Pisarchyk and Lee, "Efficient memory management for deep
/// neural net inference", 2020, section 5.2, whose maximum operator breadth is lower_bound_bytes).
/// The steps of a fork stand together, branch by branch, and what one of them touches shares no
/// memory with what another does. Forks that would make the arena larger than kMostForkedArena
/// allows are left out: their steps are as any others.
/// InvalidArgument: ids out of range, alias cycles, a tensor read before it is written.
absl::StatusOr<MemoryPlan> PlanMemory(const MemoryProblem& problem);

}  // namespace hone::compiler
