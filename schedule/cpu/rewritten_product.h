#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "schedule/structure.h"
#include "schedule/trace_writer.h"

namespace hone::schedule {

/// A product that an algorithm has rewritten, and the other clusters of the Workload. What the
/// algorithm makes of weights alone is in none of them: it is made when packaging.
struct RewrittenProduct {
  Cluster main;
  std::vector<Cluster> others;
};

/// Writes `algorithm(STAGE, <algorithm>)`, which makes so many new Stages, to a fresh writer, and
/// finds the clusters. `keep`: a Stage that is not inlined, or -1. InvalidArgument: the algorithm
/// does not take the Stage, or it is computed in no register tile.
absl::StatusOr<RewrittenProduct> RewriteProduct(TraceWriter& writer, int stage,
                                                const std::string& algorithm, int new_stages,
                                                int keep);

}  // namespace hone::schedule
