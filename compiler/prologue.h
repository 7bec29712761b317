#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "compiler/kernel_build.h"
#include "compiler/model_steps.h"
#include "graph/evaluator.h"

namespace hone::compiler {

/// The results of a kernel step's prologue (packed weights, Winograd transforms, column sums), in
/// the order of Artifact::prologue; none where it has none. One step at a time, because the results
/// of all steps together are as large as the model. The code that runs is the evaluator's, never
/// the Target's.
absl::StatusOr<std::vector<graph::ConstantPtr>> EvaluatePrologue(const ModelSteps& model,
                                                                 const BuiltKernels& built,
                                                                 const ModelStep& step,
                                                                 graph::Evaluator& evaluator);

}  // namespace hone::compiler
