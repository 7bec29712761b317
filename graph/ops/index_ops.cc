#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// Trilu, Causal, ReverseSequence and TensorScatter: bodies that look at their own indices.
namespace hone::graph::ops {
namespace {

using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

absl::StatusOr<Types> InferTrilu(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  if (x.shape.size() < 2)
    return Invalid(fmt::format("it takes an input of rank 2 or more, not {}", x.shape.size()));
  return Types{x};
}

/// Keeps what lies on and above (upper) or on and below the diagonal `k`.
absl::StatusOr<Tensors> ExpressTrilu(const OpCall& call, WorkloadBuilder& builder,
                                     const Tensors& tensors) {
  const TensorType& x = call.inputs[0].type;
  const Exprs point = Axes(x.shape.size());
  const Expr row = point[point.size() - 2];
  const Expr column = point[point.size() - 1];
  const int64_t extents = x.shape[point.size() - 2] + x.shape[point.size() - 1];
  const Expr k = ir::Int(std::clamp(call.Int("k", 0), -extents, extents));
  const bool upper = call.Int("upper", 1) != 0;
  const Expr kept = upper ? ir::Ge(column, row + k) : ir::Ge(row + k, column);
  return Tensors{builder.AddMap(
      x.shape, ir::Select(kept, ReadAt(call, builder, tensors, 0, point), ir::Const(x.dtype, 0)))};
}

absl::StatusOr<Types> InferCausal(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 2));
  const TensorType& x = call.inputs[0].type;
  const TensorType& hidden = call.inputs[1].type;
  if (x.shape.size() < 2)
    return Invalid(fmt::format("it takes an input of rank 2 or more, not {}", x.shape.size()));
  if (hidden.NumElements() != 1 || hidden.dtype != x.dtype) {
    return Invalid(fmt::format("what hidden elements are must be one {}, not {}",
                               ToString(x.dtype), ToText(hidden)));
  }
  return Types{x};
}

/// Keeps what row i of the last two axes sees: columns up to i + offset.
absl::StatusOr<Tensors> ExpressCausal(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  const TensorType& x = call.inputs[0].type;
  const Exprs point = Axes(x.shape.size());
  const int64_t extents = x.shape[point.size() - 2] + x.shape[point.size() - 1];
  const Expr last = point[point.size() - 2] +
                    ir::Int(std::clamp(call.Int("offset", 0), -extents, extents));
  const Expr hidden =
      ReadAt(call, builder, tensors, 1, Exprs(call.inputs[1].type.shape.size(), ir::Int(0)));
  return Tensors{builder.AddMap(
      x.shape,
      ir::Select(ir::Ge(last, point.back()), ReadAt(call, builder, tensors, 0, point), hidden))};
}

absl::StatusOr<Types> InferReverseSequence(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 2));
  const TensorType& x = call.inputs[0].type;
  const int64_t batch = call.Int("batch_axis", 1);
  const int64_t time = call.Int("time_axis", 0);
  if (x.shape.size() < 2 || batch < 0 || batch > 1 || time != 1 - batch) {
    return Invalid(
        fmt::format("batch_axis {} and time_axis {} must be 0 and 1 or 1 and 0, and the input of "
                    "rank 2 or more, not {}",
                    batch, time, x.shape.size()));
  }
  const TensorType& lens = call.inputs[1].type;
  if (lens.shape != Shape{x.shape[static_cast<size_t>(batch)]} || !ir::IsInteger(lens.dtype)) {
    return Invalid(fmt::format("the lengths must be {} integers, not {}",
                               x.shape[static_cast<size_t>(batch)], ToText(lens)));
  }
  return Types{x};
}

absl::StatusOr<Tensors> ExpressReverseSequence(const OpCall& call, WorkloadBuilder& builder,
                                               const Tensors& tensors) {
  const TensorType& x = call.inputs[0].type;
  const auto time = static_cast<size_t>(call.Int("time_axis", 0));
  Exprs at = Axes(x.shape.size());
  const Expr t = at[time];
  const Expr length = ir::Cast(ir::DType::kI64, ReadAt(call, builder, tensors, 1, {at[1 - time]}));
  const Expr mirrored = ir::Select(ir::Lt(t, length), length - 1 - t, t);
  at[time] = ir::Max(ir::Min(mirrored, ir::Int(x.shape[time] - 1)), ir::Int(0));
  return Tensors{builder.AddMap(x.shape, ReadAt(call, builder, tensors, 0, std::move(at)))};
}

/// TensorScatter: inputs cache, update, first position of each batch row? (0).
absl::StatusOr<Types> InferTensorScatter(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 2));
  const TensorType& cache = call.inputs[0].type;
  const TensorType& update = call.inputs[1].type;
  const size_t rank = cache.shape.size();
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", -2), rank));
  bool fits = axis > 0 && update.dtype == cache.dtype && update.shape.size() == rank;
  for (size_t d = 0; fits && d < rank; ++d) {
    const bool written = static_cast<int64_t>(d) == axis;
    fits = written ? update.shape[d] <= cache.shape[d] : update.shape[d] == cache.shape[d];
  }
  if (!fits)
    return Invalid(
        fmt::format("the update {} does not fit the cache {}", ToText(update), ToText(cache)));
  if (call.inputs.size() > 2 && call.inputs[2].present) {
    const TensorType& first = call.inputs[2].type;
    if (first.shape != Shape{cache.shape[0]} || !ir::IsInteger(first.dtype)) {
      return Invalid(
          fmt::format("the positions must be {} integers, not {}", cache.shape[0], ToText(first)));
    }
  }
  return Types{cache};
}

absl::StatusOr<Tensors> ExpressTensorScatter(const OpCall& call, WorkloadBuilder& builder,
                                             const Tensors& tensors) {
  const TensorType& cache = call.inputs[0].type;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", -2), cache.shape.size()));
  const auto a = static_cast<size_t>(axis);
  const int64_t length = call.inputs[1].type.shape[a];
  const Exprs point = Axes(cache.shape.size());
  Expr offset = point[a];
  if (call.inputs.size() > 2 && call.inputs[2].present) {
    offset = offset - ir::Cast(ir::DType::kI64, ReadAt(call, builder, tensors, 2, {point[0]}));
  }
  if (call.Int("circular", 0) != 0) offset = ir::FloorMod(offset, cache.shape[a]);
  Exprs at = point;
  at[a] = ir::Max(ir::Min(offset, ir::Int(length - 1)), ir::Int(0));
  const Expr written = ReadAt(call, builder, tensors, 1, std::move(at));
  const Expr kept = ReadAt(call, builder, tensors, 0, point);
  return Tensors{
      builder.AddMap(cache.shape, ir::Select(ir::InRange(offset, length), written, kept))};
}

constexpr OpDefinition kOps[] = {
    {"Trilu", InferTrilu, ExpressTrilu},
    {"Causal", InferCausal, ExpressCausal},
    {"TensorScatter", InferTensorScatter, ExpressTensorScatter},
    {"ReverseSequence", InferReverseSequence, ExpressReverseSequence},
};

}  // namespace

std::span<const OpDefinition> IndexOps() { return kOps; }

}  // namespace hone::graph::ops
