#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "graph/onnx_prune/dead_channels.h"
#include "graph/onnx_quantise/assignment.h"
#include "graph/onnx_quantise/source_model.h"

namespace hone::graph::onnx_prune {

/// The source with an assignment's weights (NarrowWeights::restored) and biases in place of its
/// own and without the dropped channels, as one ONNX file without external data: names and nodes
/// stay. Errors of reading external data; kResourceExhausted above the 2 GB that one message may
/// have.
absl::StatusOr<std::string> PrunedModel(const onnx_quantise::SourceModel& source,
                                        const onnx_quantise::Assignment& assignment,
                                        const DroppedChannels& dropped);

}  // namespace hone::graph::onnx_prune
