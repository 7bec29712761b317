#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"

#include "compiler/kernel_build.h"
#include "compiler/memory_plan.h"
#include "compiler/model_steps.h"
#include "graph/graph.h"
#include "ir/plan.h"

namespace hone::compiler {

/// What the runtime needs beside the code.
struct AssembledPlan {
  ir::Plan plan;
  std::vector<std::byte> constants;
  MemoryPlan memory;
};

/// Plans the memory and gives every argument of every step its buffer. `prologues`: by step, as
/// EvaluatePrologues gives them. Constants that only prologues read are left out.
absl::StatusOr<AssembledPlan> AssemblePlan(
    const ModelSteps& model, const BuiltKernels& built,
    const std::vector<std::vector<graph::ConstantPtr>>& prologues);

}  // namespace hone::compiler
