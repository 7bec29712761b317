#pragma once

#include <vector>

#include "compiler/model_steps.h"
#include "ir/target.h"
#include "search/tuner.h"

namespace hone::client {

/// One task for each Workload that occurs: kernels that differ in where their buffers lie are one.
/// Those that occur in `others` alone (compiler::ModelWays) come last and count nothing.
std::vector<search::TuningTask> MakeTasks(std::vector<compiler::ModelKernel> kernels,
                                          std::vector<compiler::ModelKernel> others,
                                          const ir::Target& target);

}  // namespace hone::client
