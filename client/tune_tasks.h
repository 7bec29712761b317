#pragma once

#include <vector>

#include "compiler/model_steps.h"
#include "ir/target.h"
#include "search/tuner.h"

namespace hone::client {

/// One task for each Workload that occurs: kernels that differ in where their buffers lie are one.
std::vector<search::TuningTask> MakeTasks(std::vector<compiler::ModelKernel> kernels,
                                          const ir::Target& target);

}  // namespace hone::client
