#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "graph/onnx_prune/channel_sets.h"
#include "graph/onnx_prune/prune_structure.h"
#include "graph/onnx_quantise/source_model.h"

namespace hone::graph::onnx_prune {

using onnx_quantise::Layer;

/// InvalidArgument, with layer and numbers: blocks or groups that do not divide the layer, a
/// sparsity that would leave none of its weights. Not for kChannel.
absl::Status CheckFits(const Layer& layer, const PruneStructure& structure, double sparsity);

/// How many of `units` a sparsity makes zero: the nearest whole number.
int64_t NumZeros(double sparsity, int64_t units);

/// The layer's weights, in their order, with the least salient ones zero. A weight's saliency is
/// its size, compared within the layer; or, where `channel_norms` (the Euclidean norm of what each
/// input channel was seen to carry) are not empty, its size times the norm, compared within the
/// column (Sun et al. 2023, Wanda, equation 1). That of a block is the root of its weights' squared
/// saliencies, compared within its columns. A group keeps its most salient ones, whatever the
/// sparsity. Not for what is taken out.
std::vector<float> PrunedWeights(const Layer& layer, const PruneStructure& structure,
                                 double sparsity, const std::vector<double>& channel_norms);

/// How much each channel of the set matters: the root of the squared saliencies of all weights that
/// meet it; with `norms`, by layer (the Euclidean norm of what each input channel was seen to
/// carry), as PrunedWeights; where they are empty times the root of the squares of the weights that
/// make it.
std::vector<double> ChannelSaliencies(const onnx_quantise::SourceModel& source,
                                      const ChannelSet& set,
                                      const std::vector<std::vector<double>>& norms);
/// The `zeros` least of them, the first of equal ones.
std::vector<bool> LeastSalient(const std::vector<double>& saliencies, int64_t zeros);

/// The layer's weights with those zero that meet these of the channels that it reads.
std::vector<float> WithoutChannels(const Layer& layer, const std::vector<bool>& gone);

}  // namespace hone::graph::onnx_prune
