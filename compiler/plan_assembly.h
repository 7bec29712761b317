#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "compiler/kernel_build.h"
#include "compiler/memory_plan.h"
#include "compiler/model_steps.h"
#include "compiler/trace_source.h"
#include "graph/evaluator.h"
#include "ir/plan.h"
#include "ir/target.h"
#include "runtime/region.h"

namespace hone::compiler {

/// What the runtime needs beside the code.
struct AssembledPlan {
  ir::Plan plan;
  runtime::Region constants;
  MemoryPlan memory;
  int possible_forks = 0;  ///< what FindBranches found
};

struct AssemblyOptions {
  ir::Target target;
  std::vector<int32_t> threads;  ///< by kernel: how many may run it at most
  BranchRun branches = BranchRun::kInTurn;
  std::string scratch_folder;  ///< of ConstantPool
};

/// Plans the memory and gives every argument of every step its buffer. Prologues are evaluated on
/// the way, and their results kept as ConstantPool does. Constants that only prologues read are
/// left out.
absl::StatusOr<AssembledPlan> AssemblePlan(const ModelSteps& model, const BuiltKernels& built,
                                           const AssemblyOptions& options,
                                           graph::Evaluator& evaluator);

}  // namespace hone::compiler
