#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "graph/op.h"

// How operators' bodies read their inputs.
namespace hone::graph::ops {

using Types = std::vector<TensorType>;
using Shape = std::vector<int64_t>;
using Exprs = std::vector<ir::Expr>;

inline absl::Status Invalid(std::string message) {
  return absl::InvalidArgumentError(std::move(message));
}

/// Var(first), Var(first + 1), … `count` of them.
Exprs Axes(size_t count, int first = 0);

/// The NumPy broadcast of two shapes, or InvalidArgument naming both.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

/// Input `i` is there, or InvalidArgument; so that `infer` may read its type.
absl::Status RequireInputs(const OpCall& call, size_t count);

/// The immediate value of a constant of one element; null for anything else.
ir::Expr ScalarConstant(const OpInput& input);

/// Element `indices` of input `i`: a constant of one element becomes an ir::Const.
ir::Expr ReadAt(const OpCall& call, const ir::WorkloadBuilder& builder,
                const std::vector<int>& tensors, size_t i, Exprs indices);

/// Input `i` under broadcasting, where `point` are the indices of the (aligned at the end) result.
ir::Expr ReadBroadcast(const OpCall& call, const ir::WorkloadBuilder& builder,
                       const std::vector<int>& tensors, size_t i, const Exprs& point);

/// The axis of [0, rank), negative ones counted from the end, or InvalidArgument.
absl::StatusOr<int64_t> ResolveAxis(int64_t axis, size_t rank);

/// The dtype in which a sum over elements of `dtype` is held: f32 for the 16-bit floats.
ir::DType AccumulatorType(ir::DType dtype);

/// What a product (MatMul, Conv) of operands of `dtype` gives: that, or by the attribute `to` the
/// type of its accumulator, unrounded. InvalidArgument for any other.
absl::StatusOr<ir::DType> ProductType(const OpCall& call, ir::DType dtype);

/// The largest and smallest value of a dtype (infinities for floats), as constants.
ir::Expr Highest(ir::DType dtype);
ir::Expr Lowest(ir::DType dtype);

}  // namespace hone::graph::ops
