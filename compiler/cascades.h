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

/// The groups of a graph, some of them chains of layers.
struct Cascades {
  std::vector<graph::Group> groups;
  int possible = 0;  ///< chains that are or, by nominal times, could be
  int joined = 0;    ///< chains that are
};

/// The groups of `graph` with chains of them joined, in topological order: each group of a chain is
/// read by the next alone, and the joined Workload's default schedule computes it in bands
/// (schedule::KindSketches::WorkInBands). Links are tried one by one, those of large tensors first.
/// kAll joins what it can; kOn what takes less nominal time joined than apart: arithmetic at the
/// target's peak, or tensors larger than half of the last cache from memory, whichever is longer.
/// Where `traces` has measured times of such a chain and of all its layers (TraceSource::FindNs)
/// and the chain takes longer, its layers stay apart. kAuto and kOff join nothing. Deterministic.
/// Errors: those of BuildWorkload and of `traces`.
absl::StatusOr<Cascades> JoinCascades(const graph::Graph& graph,
                                      const std::vector<graph::Group>& groups,
                                      const ir::Target& target, CascadeRun run,
                                      TraceSource& traces);

}  // namespace hone::compiler
