#include "graph/onnx_import/fold.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
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

/// What a reduction over no elements gives, and a product over an inner axis of none.
std::optional<double> ValueOfNothing(const OpCall& call) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (call.op == "MatMul" || call.op == "Einsum") return 0;
  if (call.op != "Reduce") return std::nullopt;
  const std::string fn = call.String("fn", "");
  const bool integer = !ir::IsFloat(call.inputs[0].type.dtype);
  if (ir::IsBool(call.inputs[0].type.dtype)) return fn == "min" || fn == "all" ? 1 : 0;
  if (fn == "sum" || fn == "l1" || fn == "l2" || fn == "sum_square" || fn == "any") return 0;
  if (fn == "prod" || fn == "all") return 1;
  if (fn == "mean" && !integer) return std::numeric_limits<double>::quiet_NaN();
  if (fn == "log_sum" || fn == "log_sum_exp") return -kInfinity;
  // Extremes of integers: their limits, which Const saturates to.
  if (fn == "max") return integer ? -1e30 : -kInfinity;
  if (fn == "min") return integer ? 1e30 : kInfinity;
  return std::nullopt;
}

/// Copies the elements `source` says, one for each element of the result in order.
template <typename Source>
ConstantPtr Copied(const TensorData& data, const TensorType& type, const Source& source) {
  const auto size = static_cast<size_t>(ir::SizeOf(type.dtype));
  std::vector<std::byte> bytes(static_cast<size_t>(type.NumElements()) * size);
  for (size_t i = 0; i < bytes.size() / size; ++i)
    std::memcpy(bytes.data() + i * size, data.bytes.data() + source(i) * size, size);
  return MakeConstant(type, std::move(bytes));
}

/// A part of a constant, or null: read where it stands, since loops take one part after the other
/// of large tables, which the interpreter would copy whole each time.
ConstantPtr PartOf(const OpCall& call, const TensorType& type) {
  const TensorData& data = *call.inputs[0].constant;
  const std::vector<int64_t>& shape = data.type.shape;
  const std::vector<int64_t>& result = type.shape;
  if (call.op == "Slice") {
    const std::vector<int64_t> starts = call.Ints("starts"), steps = call.Ints("steps");
    return Copied(data, type, [&](size_t at) {
      int64_t place = 0, stride = 1;
      auto rest = static_cast<int64_t>(at);
      for (size_t d = shape.size(); d-- > 0; rest /= result[d], stride *= shape[d])
        place += (starts[d] + rest % result[d] * steps[d]) * stride;
      return static_cast<size_t>(place);
    });
  }
  if (call.op != "Gather") return nullptr;
  const std::vector<int64_t> indices = call.inputs[1].constant->AsInt64s();
  const auto axis = static_cast<size_t>(call.Int("axis", 0));
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const auto count = static_cast<int64_t>(indices.size());
  return Copied(data, type, [&](size_t at) {
    const auto point = static_cast<int64_t>(at);
    int64_t index = indices[static_cast<size_t>(point / inner % count)];
    if (index < 0) index += shape[axis];
    return static_cast<size_t>((point / inner / count * shape[axis] + index) * inner +
                               point % inner);
  });
}

/// The first step of dequantising weights: their bytes are to be multiplied as they are
/// (recognise_quantised); what is not is folded after that.
bool IsWideningOfWeights(const OpCall& call, const TensorType& type) {
  const TensorType& from = call.inputs[0].type;
  return call.op == "Cast" && type.dtype == ir::DType::kI32 && from.shape.size() >= 2 &&
         (from.dtype == ir::DType::kI8 || from.dtype == ir::DType::kU8);
}

absl::StatusOr<std::vector<ConstantPtr>> FoldWithoutElements(const OpCall& call,
                                                             const std::vector<TensorType>& types) {
  const std::optional<double> value = ValueOfNothing(call);
  const int64_t count = types[0].NumElements();
  if (!value || types.size() != 1 || count > kMaxElementOperations) {
    return absl::UnimplementedError("an input without elements is not supported here");
  }
  const ir::Expr constant = ir::Const(types[0].dtype, *value);
  const double exact = ir::IsFloat(types[0].dtype) ? constant->float_value
                                                   : static_cast<double>(constant->int_value);
  return std::vector<ConstantPtr>{MakeConstant(
      types[0].dtype, types[0].shape, std::vector<double>(static_cast<size_t>(count), exact))};
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
  for (const OpInput& input : call.inputs) {
    if (input.present && input.type.NumElements() == 0) return FoldWithoutElements(call, types);
  }
  for (const OpInput& input : call.inputs) {
    if (input.present && input.constant == nullptr) return as_node;
  }
  if (call.op == "Reshape") {  // the same bytes: nothing to compute
    auto data = std::make_shared<TensorData>(*call.inputs[0].constant);
    data->type = types[0];
    return std::vector<ConstantPtr>{std::move(data)};
  }
  if (IsWideningOfWeights(call, types[0])) return as_node;
  const OpDefinition* definition = FindOp(call.op);
  int64_t size = 0;
  for (const TensorType& type : types) size = std::max(size, type.NumElements());
  if (definition->express == nullptr || size > kMaxElementOperations) return as_node;
  if (ConstantPtr part = PartOf(call, types[0]); part != nullptr)
    return std::vector<ConstantPtr>{std::move(part)};
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
