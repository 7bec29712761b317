#include "compiler/prologue.h"

#include "fmt/core.h"

#include "base/status.h"
#include "ir/text.h"

namespace hone::compiler {
namespace {

using graph::ConstantPtr;

absl::StatusOr<std::vector<ConstantPtr>> EvaluateOne(const ir::Artifact& artifact,
                                                     const std::vector<ConstantPtr>& constants,
                                                     graph::Evaluator& evaluator) {
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(artifact.prologue_workload));
  std::vector<ConstantPtr> arguments;
  for (const int32_t constant : artifact.prologue_inputs) {
    arguments.push_back(constants.at(static_cast<size_t>(constant)));
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ConstantPtr> outputs,
                        evaluator.Evaluate(workload, arguments));
  std::vector<ConstantPtr> results;
  for (const int32_t output : artifact.prologue_outputs) {
    results.push_back(outputs.at(static_cast<size_t>(output)));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (static_cast<int64_t>(results[i]->bytes.size()) < artifact.prologue[i].bytes) {
      return absl::InternalError(fmt::format("prologue result {} has {} bytes, the kernel reads {}",
                                             i, results[i]->bytes.size(),
                                             artifact.prologue[i].bytes));
    }
  }
  return results;
}

}  // namespace

absl::StatusOr<std::vector<ConstantPtr>> EvaluatePrologue(const ModelSteps& model,
                                                          const BuiltKernels& built,
                                                          const ModelStep& step,
                                                          graph::Evaluator& evaluator) {
  if (step.kind != ir::PlanStepKind::kKernel) return std::vector<ConstantPtr>();
  const ir::Artifact& artifact = built.kernels[step.kernel].artifact;
  if (artifact.prologue.empty()) return std::vector<ConstantPtr>();
  std::vector<ConstantPtr> constants;
  for (const graph::ValueId value : step.constants) {
    constants.push_back(model.graph.values[value].constant);
  }
  absl::StatusOr<std::vector<ConstantPtr>> results = EvaluateOne(artifact, constants, evaluator);
  if (!results.ok()) {
    return Annotate(results.status(),
                    fmt::format("prologue of kernel '{}'", model.kernels[step.kernel].name));
  }
  return results;
}

}  // namespace hone::compiler
