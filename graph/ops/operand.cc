#include "graph/ops/operand.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "fmt/format.h"

namespace hone::graph::ops {

using ir::DType;
using ir::Expr;

Exprs Axes(size_t count, int first) {
  Exprs axes;
  axes.reserve(count);
  for (size_t i = 0; i < count; ++i) axes.push_back(ir::Var(first + static_cast<int>(i)));
  return axes;
}

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape result(rank);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t left = i + a.size() < rank ? 1 : a[i + a.size() - rank];
    const int64_t right = i + b.size() < rank ? 1 : b[i + b.size() - rank];
    if (left != right && left != 1 && right != 1) {
      return Invalid(fmt::format("shapes [{}] and [{}] do not broadcast", fmt::join(a, ","),
                                 fmt::join(b, ",")));
    }
    result[i] = left == 1 ? right : left;
  }
  return result;
}

absl::Status RequireInputs(const OpCall& call, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (i >= call.inputs.size() || !call.inputs[i].present) {
      return Invalid(fmt::format("input {} is missing", i));
    }
  }
  return absl::OkStatus();
}

Expr ScalarConstant(const OpInput& input) {
  if (input.constant == nullptr || input.type.NumElements() != 1) return nullptr;
  if (ir::IsFloat(input.type.dtype))
    return ir::Const(input.type.dtype, input.constant->DoubleAt(0));
  return ir::ConstInt(input.type.dtype, input.constant->AsInt64s()[0]);
}

Expr ReadAt(const OpCall& call, const ir::WorkloadBuilder& builder, const std::vector<int>& tensors,
            size_t i, Exprs indices) {
  if (Expr scalar = ScalarConstant(call.inputs[i])) return scalar;
  return builder.At(tensors[i], std::move(indices));
}

Expr ReadBroadcast(const OpCall& call, const ir::WorkloadBuilder& builder,
                   const std::vector<int>& tensors, size_t i, const Exprs& point) {
  const Shape& shape = call.inputs[i].type.shape;
  Exprs indices;
  for (size_t d = 0; d < shape.size(); ++d) {
    indices.push_back(shape[d] == 1 ? ir::Int(0) : point[point.size() - shape.size() + d]);
  }
  return ReadAt(call, builder, tensors, i, std::move(indices));
}

absl::StatusOr<int64_t> ResolveAxis(int64_t axis, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) {
    return Invalid(fmt::format("axis {} is outside [{}, {}) of rank {}", axis, -n, n, n));
  }
  return axis < 0 ? axis + n : axis;
}

DType AccumulatorType(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype;
}

absl::StatusOr<DType> ProductType(const OpCall& call, DType dtype) {
  const std::string to = call.String("to", ToString(dtype));
  const DType accumulator = AccumulatorType(dtype);
  if (to == ToString(dtype)) return dtype;
  if (to == ToString(accumulator)) return accumulator;
  return Invalid(fmt::format("its sums are {}, not {}", ToString(accumulator), to));
}

Expr Highest(DType dtype) {
  if (ir::IsFloat(dtype)) return ir::Const(dtype, std::numeric_limits<double>::infinity());
  if (ir::IsBool(dtype)) return ir::ConstInt(dtype, 1);
  const int bits = static_cast<int>(8 * ir::SizeOf(dtype)) - (ir::IsUnsigned(dtype) ? 0 : 1);
  return ir::ConstInt(dtype, static_cast<int64_t>(~uint64_t{0} >> (64 - bits)));
}

Expr Lowest(DType dtype) {
  if (ir::IsFloat(dtype)) return ir::Const(dtype, -std::numeric_limits<double>::infinity());
  if (ir::IsBool(dtype) || ir::IsUnsigned(dtype)) return ir::ConstInt(dtype, 0);
  const int bits = static_cast<int>(8 * ir::SizeOf(dtype)) - 1;
  return ir::ConstInt(dtype, static_cast<int64_t>(~uint64_t{0} << bits));
}

}  // namespace hone::graph::ops
