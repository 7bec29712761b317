#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

#include "graph/graph.h"

// Turns a model of a batch of images into a model of one image that runs once for each.
namespace hone::graph {

/// What a graph computes for one image of its batch.
struct OneImage {
  /// The same nodes. In each value that depends on the inputs, the extent that holds the batch is
  /// divided by `images`. Constants with positions in every image keep those in the first.
  Graph graph;
  int64_t images = 1;
};

/// Shows that every node maps images on their own and gives the graph of one: rows [i·n, (i+1)·n)
/// of each of its results along one axis, n a whole number, are what the new graph computes from
/// those of the inputs. Inputs, of at least 2 images, and outputs have the batch as their first
/// extent, values between them anywhere. FailedPrecondition names the node or value that is in the
/// way: one that mixes images, or for which this cannot be shown. Deterministic; equal Stages are
/// shown by their index expressions, not by the names of operators.
absl::StatusOr<OneImage> OneImageOf(const Graph& graph);

}  // namespace hone::graph
