#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/onnx_quantise/quantise_scheme.h"
#include "graph/onnx_quantise/source_model.h"

namespace hone::graph::onnx_quantise {

/// A layer's weights in fewer bits.
struct NarrowWeights {
  /// In the order of the weights: i8, or -8 to 7 of 4 bits; the bits of bf16 and f16. One is empty.
  std::vector<int8_t> bytes;
  std::vector<uint16_t> halves;
  /// One a column of i8; one a column and group of 4 bits, groups side by side.
  std::vector<float> scales;
  /// What they stand for, in the order of the weights.
  std::vector<float> restored;
};

/// Why a layer stays as it is; empty where it can be narrowed.
std::string WhyNotNarrow(const Layer& layer, Scheme scheme, int64_t group_size);

/// `smooth`: the data are divided by these, a number for each input channel, so that the weights
/// are multiplied by them first; empty: ones. `group_size`: terms that share a scale, of 4 bits;
/// divides the layer's terms.
NarrowWeights Narrow(const Layer& layer, Scheme scheme, const std::vector<float>& smooth,
                     int64_t group_size);

/// What is to be added to each column's bias, so that the layer's mean stays: Σ (w - restored) ·
/// mean of the smoothed data of each channel. [columns] (Nagel et al. 2019, section 4.2)
std::vector<double> MeanShift(const Layer& layer, const NarrowWeights& narrow,
                              const std::vector<float>& smooth,
                              const std::vector<double>& channel_means);

}  // namespace hone::graph::onnx_quantise
