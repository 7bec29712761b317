#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/graph.h"
#include "graph/onnx_quantise/quantise_scheme.h"

namespace hone::onnx {
class ModelProto;
}

namespace hone::graph::onnx_quantise {

/// A product of data with known weights of f32: MatMul, Gemm or Conv in the main graph.
struct Layer {
  std::string name;  ///< of the node; where it has none, of its output
  std::string op;
  int node = 0;  ///< in the model's order
  size_t group = 0;
  std::string weights;  ///< the value's name
  ConstantPtr weights_data;
  int64_t columns = 0;   ///< output channels
  int64_t terms = 0;     ///< of one sum
  int64_t window = 1;    ///< terms of each input channel, side by side
  int64_t channels = 0;  ///< of the data; those of a sum are a group of them
  bool by_rows = false;  ///< the weights' first dimension is the output channel, not their last
  /// The known vector that is added to each column, and where: an input of the node itself, or the
  /// other operand of the Add that alone reads its output. Empty: none.
  std::string bias;
  ConstantPtr bias_data;
  int bias_node = -1, bias_input = -1;

  /// The element of the weights that is multiplied in a term of a column's sum, and the input
  /// channel that it meets.
  size_t ElementOf(int64_t column, int64_t term) const {
    return static_cast<size_t>(by_rows ? column * terms + term : term * columns + column);
  }
  size_t ChannelOf(int64_t column, int64_t term) const {
    const int64_t of_sum = terms / window;
    const int64_t first = column / (columns * of_sum / channels) * of_sum;
    return static_cast<size_t>(first + term / window);
  }
};

/// The layers that read one value, whose numbers they share.
struct InputGroup {
  std::string value;
  std::vector<size_t> layers;
  int64_t channels = 0;
  /// Extents of a number for each channel, as it broadcasts over the value.
  std::vector<int64_t> spread;
  /// What can divide the value's channels by numbers above zero instead of a node of its own: the
  /// layer whose columns they are, up to operators that such numbers pass (Relu, pooling), or the
  /// LayerNormalization that makes it. Nobody but the group's layers reads the value then. -1:
  /// none.
  int producer = -1;
  int norm_node = -1;
};

/// A node that looks like a layer but is not one.
struct LeftOut {
  std::string name, op, why;
};

/// What a model is read for: it decides which models are refused, and with which message.
enum class SourceUse : uint8_t { kQuantise, kPrune };

/// A model to be quantised or pruned, and its layers that can be. Immutable.
struct SourceModel {
  std::shared_ptr<const onnx::ModelProto> proto;
  std::string folder, linked_folder;  ///< of its external data, as ImportOptions
  std::vector<Layer> layers;
  std::vector<InputGroup> groups;
  std::vector<LeftOut> left_out;
};

/// Reads an ONNX file that can be imported. Errors of reading; kInvalidArgument for weights that
/// are not finite, a model that is quantised already or has no layer, and, to be quantised, an
/// operator set below 13.
absl::StatusOr<SourceModel> ReadSourceModel(const std::string& path,
                                            SourceUse use = SourceUse::kQuantise);

}  // namespace hone::graph::onnx_quantise
