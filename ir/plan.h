#pragma once

#include <compare>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "ir/artifact.h"
#include "ir/dtype.h"

// Plain structs of a compiled model, std only: the runtime includes this file.
namespace hone::ir {

enum class PlanBufferKind : uint8_t {
  kArena = 0,     ///< at `offset` of the arena
  kConstant = 1,  ///< at `offset` of the package's constants section
  kInput = 2,     ///< the caller's input number `offset`
  kOutput = 3,    ///< the caller's output number `offset`
};

/// A contiguous buffer of the running model; 64-aligned.
struct PlanBuffer {
  PlanBufferKind kind = PlanBufferKind::kArena;
  int64_t offset = 0;
  int64_t bytes = 0;
  /// How much further on it lies in each next repeat of a loop; 0: it is the same memory always.
  int64_t advance_bytes = 0;
};

/// Stands for a constant of a kernel that only its prologue reads: not in the package, a null
/// pointer for the code.
inline constexpr int32_t kNoPlanBuffer = -1;

enum class PlanStepKind : uint8_t { kKernel = 0, kExtern = 1 };

/// One kernel run (all its phases) or one extern routine. Buffer ids index Plan::buffers.
struct PlanStep {
  PlanStepKind kind = PlanStepKind::kKernel;
  int32_t kernel = -1;      ///< index into Plan::kernels
  std::string extern_name;  ///< routine of the runtime
  std::vector<int64_t> extern_attributes;
  std::vector<ArtifactBuffer> extern_inputs, extern_outputs;
  std::vector<int32_t> buffers;  ///< kernel: in Artifact order; extern: inputs then outputs
  int32_t threads = 1;
};

/// Steps that run several times, one after the other each time: once for each image of a batch. No
/// repeat reads what another writes.
struct PlanLoop {
  int32_t first = 0;  ///< index into Plan::steps
  int32_t count = 0;
  int64_t repeats = 1;
};

/// What the model calls the node that an error of a step is about.
struct PlanName {
  int32_t step = 0;    ///< index into Plan::steps
  int32_t input = -1;  ///< the kernel's input whose elements are indices; -1: the step itself
  std::string node;
  std::string value;  ///< that input; empty for the step itself
};

/// A phase without a barrier before it. It has as many iterations as the phase that
/// runs right before (in the same kernel or in the step before) and neither is repeated; its
/// iteration i touches nothing that another iteration than i of that phase, or of those joined to
/// it, writes, nor the other way round. So one thread may run iterations [a, b) of all of them in
/// turn.
struct PlanJoin {
  int32_t step = 0;   ///< index into Plan::steps
  int32_t phase = 0;  ///< of that step's kernel
  auto operator<=>(const PlanJoin&) const = default;
};

/// Branches that need not wait for each other: stretches of steps that follow one after the other
/// in Plan::steps. None reads what another writes, and no two write the same bytes, so threads may
/// run one while others run another. In turn they give the same.
struct PlanFork {
  int32_t first = 0;            ///< index into Plan::steps, of the first branch's first
  std::vector<int32_t> counts;  ///< steps of each branch

  int32_t end() const { return std::accumulate(counts.begin(), counts.end(), first); }
};

struct PlanValue {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
};

/// Everything the runtime needs to run a model besides constants and code.
struct Plan {
  int64_t arena_bytes = 0;
  std::vector<PlanBuffer> buffers;
  std::vector<Artifact> kernels;  ///< without prologue text
  std::vector<PlanStep> steps;
  std::vector<PlanValue> inputs, outputs;
  std::vector<PlanName> names;  ///< by step and input; of those that can fail
  std::vector<PlanLoop> loops;  ///< in order, apart from each other; a step of none runs once
  std::vector<PlanJoin> joins;  ///< by step and phase
  std::vector<PlanFork> forks;  ///< in order, apart from each other and from the ends of loops
};

/// Whether a loop or a branch begins or ends right before this step.
inline bool IsEdge(const Plan& plan, int32_t step) {
  for (const PlanLoop& loop : plan.loops) {
    if (step == loop.first || step == loop.first + loop.count) return true;
  }
  for (const PlanFork& fork : plan.forks) {
    int32_t edge = fork.first;
    if (step == edge) return true;
    for (const int32_t count : fork.counts) {
      edge += count;
      if (step == edge) return true;
    }
  }
  return false;
}

/// How often a run of the plan runs this step.
inline int64_t RepeatsOf(const Plan& plan, size_t step) {
  for (const PlanLoop& loop : plan.loops) {
    const auto first = static_cast<size_t>(loop.first);
    if (step >= first && step < first + static_cast<size_t>(loop.count)) return loop.repeats;
  }
  return 1;
}

}  // namespace hone::ir
