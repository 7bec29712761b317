#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

#include "graph/graph.h"

// A model of a batch as a model of one image that runs for each of them.
namespace hone::graph {

/// What a graph computes for one image of its batch.
struct OneImage {
  /// The same nodes and constants; the leading extents of what depends on the inputs are divided by
  /// `images`.
  Graph graph;
  int64_t images = 1;
};

/// Shows that every node maps images on their own and gives the graph of one: rows [i·n, (i+1)·n)
/// of each of its results, n a whole number, are what the new graph computes from those of the
/// inputs. Each input has the batch as its first extent, at least 2. FailedPrecondition names the
/// node or value that is in the way: one that mixes images, or has them elsewhere than along its
/// first axis, or for which this cannot be shown. Deterministic; equal Stages are shown by their
/// index expressions, not by the names of operators.
absl::StatusOr<OneImage> OneImageOf(const Graph& graph);

}  // namespace hone::graph
