#pragma once

#include "graph/graph.h"
#include "graph/onnx_prune/channel_sets.h"
#include "graph/onnx_quantise/source_model.h"

namespace hone::graph::onnx_prune {

/// Follows heads from the layers that read an attention's output back to those that make queries,
/// keys and values, through whatever a `graph` imported from the source (before any pass) keeps
/// apart by head. Constants that name their number must be known: shapes of Reshape, sizes of
/// Split, ends of Slice. A set for each attention has as many channels as heads and one reader, the
/// projection of its output; others of these have a reason.
ChannelSets FindHeadSets(const onnx_quantise::SourceModel& source, const Graph& graph);

}  // namespace hone::graph::onnx_prune
