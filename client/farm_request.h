#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "compiler/batch_run.h"
#include "graph/graph.h"
#include "ir/target.h"
#include "measure/builder_client.h"
#include "proto/farm_messages.h"

namespace hone::client {

/// The tasks of a session that tunes a model for a resolved target: each distinct Workload once,
/// with how often it occurs. Nothing else of the model is in them. Errors as
/// compiler::ExtractKernels. The target is left with the extensions that some Workload can use:
/// devices without the others tune it too.
absl::StatusOr<std::vector<proto::TaskSpec>> TasksOfModel(
    graph::Graph graph, ir::Target* target, measure::BuilderClient& builder,
    compiler::BatchRun batch = compiler::BatchRun::kAuto);

}  // namespace hone::client
