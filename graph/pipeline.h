#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/evaluator.h"
#include "graph/graph.h"
#include "ir/target.h"

namespace hone::graph {

/// What one pass did.
struct PassReport {
  std::string pass;
  int changes = 0;
  int nodes_before = 0;
  int nodes_after = 0;
};

/// Runs the passes of the list in pipeline.cc, in its order. Deterministic. The graph computes the
/// same afterwards; on an error (with the name of the pass) it must not be used.
absl::StatusOr<std::vector<PassReport>> RunPipeline(Graph& graph, Evaluator& evaluator,
                                                    const ir::Target& target);

/// A line a pass, `fold_constants   12 changes   80 -> 68 nodes`.
std::string ToText(const std::vector<PassReport>& reports);

}  // namespace hone::graph
