#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/onnx_quantise/byte_grid.h"
#include "graph/onnx_quantise/narrow_weights.h"
#include "graph/onnx_quantise/quantise_scheme.h"
#include "graph/onnx_quantise/source_model.h"

namespace hone::graph::onnx_quantise {

/// What becomes of a layer.
struct LayerChoice {
  std::string why_kept;     ///< in f32; empty: it is narrowed
  NarrowWeights narrow;     ///< empty where it can only be kept
  std::vector<float> bias;  ///< in place of the layer's own; empty: its own

  bool kept() const { return !why_kept.empty(); }
};

/// What becomes of a value that layers read.
struct GroupChoice {
  ByteGrid grid;              ///< of kInt8
  std::vector<float> smooth;  ///< the value is divided by these, by channels; empty: it is not
};

/// A decision for each layer and each group of a source model, in its order.
struct Assignment {
  Scheme scheme = Scheme::kInt8;
  int64_t group_size = 32;  ///< terms that share a scale, of 4 bits
  std::vector<LayerChoice> layers;
  std::vector<GroupChoice> groups;
};

}  // namespace hone::graph::onnx_quantise
