#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "compiler/batch_run.h"
#include "compiler/model_steps.h"
#include "graph/graph.h"
#include "measure/builder_client.h"

namespace hone::compiler {

/// A model as it runs now, and the kernels of the ways of running it that nobody has compared yet.
struct ModelWays {
  ModelSteps steps;
  std::vector<ModelKernel> others;  ///< may have Workloads of `steps` and the same one twice
  /// The chains of layers where the batch runs the other way; empty where that is settled.
  CascadeChoice other_cascades;
};

/// The steps of a model as CompileModel would make them for this target and from these schedules,
/// of which all but Find are asked; no code is made for the target. Where the batch or the chains
/// of layers, of either way to run the batch, may run either way, kAuto was asked for and `traces`
/// does not know, `others` are the kernels of the other ways. Errors as CompileModel's.
absl::StatusOr<ModelWays> ExtractWays(graph::Graph graph, const std::string& target,
                                      measure::BuilderClient& builder, BatchRun batch,
                                      CascadeRun cascades, TraceSource& traces);

/// Its steps as CompileModel would make them; `known` null: nothing is known. Errors as
/// ExtractWays'.
absl::StatusOr<ModelSteps> ExtractSteps(graph::Graph graph, const std::string& target,
                                        measure::BuilderClient& builder, BatchRun batch,
                                        CascadeRun cascades, TraceSource* known);

/// The distinct Workloads of its steps, with how often each occurs; `known` null: nothing is known.
absl::StatusOr<std::vector<ModelKernel>> ExtractKernels(graph::Graph graph,
                                                        const std::string& target,
                                                        measure::BuilderClient& builder,
                                                        BatchRun batch = BatchRun::kAuto,
                                                        CascadeRun cascades = CascadeRun::kAuto,
                                                        TraceSource* known = nullptr);

}  // namespace hone::compiler
