#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "compiler/batch_run.h"
#include "compiler/model_steps.h"
#include "graph/graph.h"
#include "measure/builder_client.h"

namespace hone::compiler {

/// The distinct Workloads of a model as CompileModel would build them for this target, with how
/// often each occurs; no code is made for the target. Errors as CompileModel's.
absl::StatusOr<std::vector<ModelKernel>> ExtractKernels(graph::Graph graph,
                                                        const std::string& target,
                                                        measure::BuilderClient& builder,
                                                        BatchRun batch = BatchRun::kAuto);

}  // namespace hone::compiler
