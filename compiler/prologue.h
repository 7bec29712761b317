#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "compiler/kernel_build.h"
#include "compiler/model_steps.h"
#include "graph/evaluator.h"

namespace hone::compiler {

/// The results of each step's prologue (packed weights, Winograd transforms, column sums), in the
/// order of Artifact::prologue; none for steps without one. Steps that run the same kernel on the
/// same constants share them. The code that runs is the evaluator's, never the Target's.
absl::StatusOr<std::vector<std::vector<graph::ConstantPtr>>> EvaluatePrologues(
    const ModelSteps& model, const BuiltKernels& built, graph::Evaluator& evaluator);

}  // namespace hone::compiler
