#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "compiler/batch_run.h"
#include "compiler/model_steps.h"
#include "graph/graph.h"
#include "measure/builder_client.h"

namespace hone::compiler {

/// The steps of a model as CompileModel would make them for this target and from these schedules,
/// of which only FindBatch and FindCascadeRun are asked; no code is made for the target. Errors as
/// CompileModel's.
absl::StatusOr<ModelSteps> ExtractSteps(graph::Graph graph, const std::string& target,
                                        measure::BuilderClient& builder, BatchRun batch,
                                        CascadeRun cascades, TraceSource& traces);

/// The distinct Workloads of those, with how often each occurs; `known` null: nothing is known.
absl::StatusOr<std::vector<ModelKernel>> ExtractKernels(graph::Graph graph,
                                                        const std::string& target,
                                                        measure::BuilderClient& builder,
                                                        BatchRun batch = BatchRun::kAuto,
                                                        CascadeRun cascades = CascadeRun::kAuto,
                                                        TraceSource* known = nullptr);

}  // namespace hone::compiler
