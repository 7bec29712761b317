#pragma once

#include "graph/onnx_import/node_import.h"

// Whole layers of com.microsoft, which microsoft.cc lists.
namespace hone::graph::onnx_import {

/// An LSTM with weights of bytes. ONNX Runtime rounds data and states to bytes as well, anew in
/// each step; here they stay f32, so that results are nearer to those of the model that was
/// quantised.
void DynamicQuantizeLstm(NodeImport& node);

/// Attention whose queries, keys and values one product of bytes makes.
void QAttention(NodeImport& node);

}  // namespace hone::graph::onnx_import
