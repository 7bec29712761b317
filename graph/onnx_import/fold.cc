#include "graph/onnx_import/fold.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "ir/interpreter.h"
#include "ir/workload_builder.h"

namespace hone::graph::onnx_import {
namespace {

constexpr int64_t kMaxElementOperations = int64_t{1} << 16;

ir::TensorBuffer BufferOf(const TensorData& data) {
  ir::TensorBuffer buffer = ir::TensorBuffer::Zeros(data.type.dtype, data.type.shape);
  if (!buffer.bytes.empty())
    std::memcpy(buffer.bytes.data(), data.bytes.data(), buffer.bytes.size());
  return buffer;
}

ConstantPtr ConstantOf(const ir::TensorBuffer& buffer) {
  std::vector<std::byte> bytes(buffer.bytes.size());
  if (!bytes.empty()) std::memcpy(bytes.data(), buffer.bytes.data(), bytes.size());
  return MakeConstant({buffer.dtype, buffer.shape}, std::move(bytes));
}

bool AllWithoutElements(const std::vector<TensorType>& types) {
  return std::all_of(types.begin(), types.end(),
                     [](const TensorType& t) { return t.NumElements() == 0; });
}

/// Iterations over all Stages, saturating.
int64_t ElementOperations(const std::vector<ir::Stage>& stages) {
  int64_t total = 0;
  for (const ir::Stage& stage : stages) {
    int64_t points = 1;
    for (int axis = 0; axis < stage.num_axes(); ++axis) {
      if (__builtin_mul_overflow(points, stage.Extent(axis), &points)) return INT64_MAX;
    }
    if (__builtin_add_overflow(total, points, &total)) return INT64_MAX;
  }
  return total;
}

absl::StatusOr<std::vector<ConstantPtr>> Run(const OpCall& call, const ir::WorkloadBuilder& builder,
                                             const std::vector<int>& tensors,
                                             const std::vector<int>& outputs) {
  const ir::WorkloadBuilder::Result result = builder.Finish();
  std::vector<ir::TensorBuffer> arguments;
  for (int id : result.workload.Constants()) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i] >= 0 && result.canonical[static_cast<size_t>(tensors[i])] == id) {
        arguments.push_back(BufferOf(*call.inputs[i].constant));
        break;
      }
    }
  }
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::InterpretedTensor> made,
                        ir::RunWorkload(result.workload, arguments));
  const std::vector<int> order = result.workload.Outputs();
  std::vector<ConstantPtr> values;
  for (int output : outputs) {
    const auto at =
        std::find(order.begin(), order.end(), result.canonical[static_cast<size_t>(output)]);
    values.push_back(ConstantOf(made[static_cast<size_t>(at - order.begin())].tensor));
  }
  return values;
}

}  // namespace

absl::StatusOr<std::vector<ConstantPtr>> Fold(const OpCall& call,
                                              const std::vector<TensorType>& types) {
  const std::vector<ConstantPtr> as_node;
  if (AllWithoutElements(types)) {
    std::vector<ConstantPtr> values;
    for (const TensorType& type : types) values.push_back(MakeConstant(type, {}));
    return values;
  }
  bool elements = true;
  for (const OpInput& input : call.inputs) {
    if (!input.present) continue;
    if (input.constant == nullptr) return as_node;
    elements = elements && input.type.NumElements() > 0;
  }
  if (call.op == "Reshape") {  // the same bytes: nothing to compute
    auto data = std::make_shared<TensorData>(*call.inputs[0].constant);
    data->type = types[0];
    return std::vector<ConstantPtr>{std::move(data)};
  }
  const OpDefinition* definition = FindOp(call.op);
  int64_t size = 0;
  for (const TensorType& type : types) size = std::max(size, type.NumElements());
  if (definition->express == nullptr || !elements || size > kMaxElementOperations) return as_node;
  ir::WorkloadBuilder builder;
  std::vector<int> tensors;
  for (const OpInput& input : call.inputs) {
    tensors.push_back(input.present ? builder.AddConstant(input.type.dtype, input.type.shape) : -1);
  }
  HONE_ASSIGN_OR_RETURN(std::vector<int> outputs, definition->express(call, builder, tensors));
  outputs.resize(types.size());
  if (ElementOperations(builder.stages()) > kMaxElementOperations) return as_node;
  for (int output : outputs) builder.MarkOutput(output);
  return Run(call, builder, tensors, outputs);
}

}  // namespace hone::graph::onnx_import
