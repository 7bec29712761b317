#include "compiler/extract_kernels.h"

#include <utility>

#include "base/status.h"
#include "compiler/kernel_evaluator.h"
#include "graph/pipeline.h"
#include "ir/target.h"

namespace hone::compiler {

absl::StatusOr<ModelSteps> ExtractSteps(graph::Graph graph, const std::string& target_text,
                                        measure::BuilderClient& builder, BatchRun batch,
                                        CascadeRun cascades, TraceSource& traces) {
  ir::Target target;
  std::string error;
  if (!ir::ParseTarget(target_text, &target, &error)) return absl::InvalidArgumentError(error);
  KernelEvaluator evaluator(builder);
  HONE_RETURN_IF_ERROR(graph::RunPipeline(graph, evaluator, target).status());
  return MakeSteps(std::move(graph), target, batch, cascades, traces);
}

absl::StatusOr<std::vector<ModelKernel>> ExtractKernels(graph::Graph graph,
                                                        const std::string& target,
                                                        measure::BuilderClient& builder,
                                                        BatchRun batch, CascadeRun cascades,
                                                        TraceSource* known) {
  DefaultTraceSource nothing;
  HONE_ASSIGN_OR_RETURN(ModelSteps steps,
                        ExtractSteps(std::move(graph), target, builder, batch, cascades,
                                     known != nullptr ? *known : nothing));
  return std::move(steps.kernels);
}

}  // namespace hone::compiler
