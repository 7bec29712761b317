#include "compiler/extract_kernels.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/status.h"
#include "compiler/kernel_evaluator.h"
#include "graph/pipeline.h"
#include "ir/target.h"

namespace hone::compiler {

namespace {

struct Compiled {
  graph::Graph graph;  ///< after its passes
  ir::Target target;
};

absl::StatusOr<Compiled> RunPasses(graph::Graph graph, const std::string& target_text,
                                   measure::BuilderClient& builder) {
  Compiled compiled{.graph = std::move(graph), .target = {}};
  std::string error;
  if (!ir::ParseTarget(target_text, &compiled.target, &error))
    return absl::InvalidArgumentError(error);
  KernelEvaluator evaluator(builder);
  HONE_RETURN_IF_ERROR(graph::RunPipeline(compiled.graph, evaluator, compiled.target).status());
  return compiled;
}

}  // namespace

absl::StatusOr<ModelWays> ExtractWays(graph::Graph graph, const std::string& target_text,
                                      measure::BuilderClient& builder, BatchRun batch,
                                      CascadeRun cascades, TraceSource& traces) {
  HONE_ASSIGN_OR_RETURN(const Compiled compiled, RunPasses(std::move(graph), target_text, builder));
  const auto steps_of = [&](BatchRun images, CascadeRun chains) {
    return MakeSteps(compiled.graph, compiled.target, images, chains, traces);
  };
  ModelWays ways;
  HONE_ASSIGN_OR_RETURN(ways.steps, steps_of(batch, cascades));
  const auto add = [&](ModelSteps steps) {
    std::ranges::move(steps.kernels, std::back_inserter(ways.others));
  };
  const auto add_joined = [&](const CascadeChoice& chains, BatchRun images) -> absl::Status {
    if (cascades != CascadeRun::kAuto || chains.apart.empty() || chains.judged)
      return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(ModelSteps steps, steps_of(images, CascadeRun::kOn));
    add(std::move(steps));
    return absl::OkStatus();
  };
  const BatchRun now = ways.steps.images > 1 ? BatchRun::kEach : BatchRun::kTogether;
  const BatchChoice& images = ways.steps.batch;
  if (batch == BatchRun::kAuto && !images.together.empty() && !images.judged) {
    const BatchRun other = now == BatchRun::kEach ? BatchRun::kTogether : BatchRun::kEach;
    HONE_ASSIGN_OR_RETURN(ModelSteps steps, steps_of(other, cascades));
    ways.other_cascades = steps.cascades;
    add(std::move(steps));
    HONE_RETURN_IF_ERROR(add_joined(ways.other_cascades, other));
  }
  HONE_RETURN_IF_ERROR(add_joined(ways.steps.cascades, now));
  return ways;
}

absl::StatusOr<ModelSteps> ExtractSteps(graph::Graph graph, const std::string& target,
                                        measure::BuilderClient& builder, BatchRun batch,
                                        CascadeRun cascades, TraceSource* known) {
  DefaultTraceSource nothing;
  HONE_ASSIGN_OR_RETURN(Compiled compiled, RunPasses(std::move(graph), target, builder));
  return MakeSteps(std::move(compiled.graph), compiled.target, batch, cascades,
                   known != nullptr ? *known : nothing);
}

absl::StatusOr<std::vector<ModelKernel>> ExtractKernels(graph::Graph graph,
                                                        const std::string& target,
                                                        measure::BuilderClient& builder,
                                                        BatchRun batch, CascadeRun cascades,
                                                        TraceSource* known) {
  HONE_ASSIGN_OR_RETURN(ModelSteps steps,
                        ExtractSteps(std::move(graph), target, builder, batch, cascades, known));
  return std::move(steps.kernels);
}

}  // namespace hone::compiler
