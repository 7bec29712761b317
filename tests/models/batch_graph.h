#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

#include "graph/graph.h"

namespace hone {

/// An imported network of one image as one of `images`: the first extents of its inputs grow, and
/// so do those of shapes written out that begin with 1. Errors where an operator does not take the
/// types that follow.
absl::StatusOr<graph::Graph> BatchOf(graph::Graph graph, int64_t images);

}  // namespace hone
