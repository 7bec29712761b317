#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "compiler/trace_source.h"
#include "graph/graph.h"
#include "graph/grouping.h"
#include "ir/target.h"

// Chains of layers that become one kernel, computed in bands, so that what lies between the layers
// stays in the near caches (docs/decisions/0015-cascades.md).
namespace hone::compiler {

/// The groups of `graph` with chains of them joined, in topological order: each group of a chain is
/// read by the next alone, and the joined Workload's default schedule computes it in bands
/// (schedule::KindSketches::WorkInBands). Links are tried one by one, those of large tensors first.
/// kAll joins what it can; kOn what takes less nominal time joined than apart: arithmetic at the
/// target's peak, or tensors larger than half of the last cache from memory, whichever is longer.
/// kAuto and kOff join nothing. Deterministic. Errors: those of BuildWorkload.
absl::StatusOr<std::vector<graph::Group>> JoinCascades(const graph::Graph& graph,
                                                       const std::vector<graph::Group>& groups,
                                                       const ir::Target& target, CascadeRun run);

/// How many of `joined` are chains of `groups`, from which JoinCascades made them.
int CountCascades(const std::vector<graph::Group>& groups, const std::vector<graph::Group>& joined);

}  // namespace hone::compiler
