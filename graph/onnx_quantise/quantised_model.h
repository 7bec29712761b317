#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "graph/onnx_quantise/assignment.h"
#include "graph/onnx_quantise/source_model.h"

namespace hone::graph::onnx_quantise {

/// The source with an assignment carried out, as one ONNX file without external data. int8:
/// QuantizeLinear and DequantizeLinear around data and weights; int8-dynamic: DynamicQuantizeLinear
/// and MatMulInteger; int8-weights: DequantizeLinear; int4-weights: MatMulNBits of com.microsoft;
/// bf16 and f16: Cast. What is kept stays node for node. Errors of reading external data;
/// kResourceExhausted above the 2 GB that one message may have.
absl::StatusOr<std::string> QuantisedModel(const SourceModel& source, const Assignment& assignment);

}  // namespace hone::graph::onnx_quantise
