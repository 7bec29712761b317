#pragma once

#include <vector>

#include "graph/onnx_import/node_import.h"

namespace hone::graph::onnx_import {

/// strides, dilations, pads, auto_pad and ceil_mode of a convolution or pooling node.
struct WindowAttributes {
  std::vector<int64_t> kernel;
  std::vector<int64_t> strides;
  std::vector<int64_t> dilations;
  std::vector<int64_t> pads;  ///< begin…, end…, auto_pad resolved
};

/// Reads them for an input of shape [n, c, spatial…]; `kernel` from kernel_shape, or from the
/// weights when `weights` is a value. Missing ones become ones and zeros. Counts are checked, sizes
/// by the operators.
WindowAttributes ReadWindow(NodeImport& node, ValueId x, ValueId weights);

}  // namespace hone::graph::onnx_import
