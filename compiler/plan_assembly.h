#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "compiler/kernel_build.h"
#include "compiler/memory_plan.h"
#include "compiler/model_steps.h"
#include "graph/evaluator.h"
#include "ir/plan.h"
#include "runtime/region.h"

namespace hone::compiler {

/// What the runtime needs beside the code.
struct AssembledPlan {
  ir::Plan plan;
  runtime::Region constants;
  MemoryPlan memory;
};

/// Plans the memory and gives every argument of every step its buffer. Prologues are evaluated on
/// the way, and their results kept as ConstantPool does with `scratch_folder`. Constants that only
/// prologues read are left out. `threads`: by kernel, how many may run it at most.
absl::StatusOr<AssembledPlan> AssemblePlan(const ModelSteps& model, const BuiltKernels& built,
                                           const std::vector<int32_t>& threads,
                                           graph::Evaluator& evaluator,
                                           const std::string& scratch_folder);

}  // namespace hone::compiler
