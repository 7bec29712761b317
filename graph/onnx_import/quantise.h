#pragma once

#include "graph/onnx_import/node_import.h"

// What operators of quantised models are composed of. Scales and zero points broadcast over what
// they belong to.
namespace hone::graph::onnx_import {

/// round(x / scale) + zero point, half to even, saturating; kNoValue as zero point: 0.
ValueId Quantised(NodeImport& n, ValueId x, ValueId scale, ValueId zero, ir::DType to);

/// (x - zero point) · scale of integers x, as f32.
ValueId Dequantised(NodeImport& n, ValueId x, ValueId scale, ValueId zero);

/// Bytes with a scale and a zero point found from the value's own range.
struct DynamicBytes {
  ValueId bytes = kNoValue, scale = kNoValue, zero = kNoValue;
};
DynamicBytes DynamicallyQuantised(NodeImport& n, ValueId x);

/// MatMulInteger of operands of rank 1 to 6; zero points of one element or one per row or column.
ValueId IntegerProduct(NodeImport& n, ValueId a, ValueId b, ValueId zero_a, ValueId zero_b);

}  // namespace hone::graph::onnx_import
