#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// MatMulNarrow: a product with weights that stay in bytes, or two in a byte, until they are
// multiplied: a [.., m, k] of f32, w [n, groups, bytes of a group], scale [n, groups], offset
// [n, groups]?; weight = (q - zero) · scale + offset.
namespace hone::graph::ops {
namespace {

using ir::DType;
using ir::Expr;
using ir::WorkloadBuilder;

constexpr int64_t kHalfBits = 4;

int64_t PerByte(const OpCall& call) { return 8 / call.Int("bits", 8); }

absl::StatusOr<Types> InferMatMulNarrow(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 3));
  const TensorType& a = call.inputs[0].type;
  const TensorType& w = call.inputs[1].type;
  const int64_t bits = call.Int("bits", 8);
  if (bits != 8 && bits != kHalfBits)
    return Invalid(fmt::format("weights of {} bits are not supported, only of 4 and 8", bits));
  if (a.dtype != DType::kF32 || a.shape.size() < 2)
    return Invalid(fmt::format("it takes f32 of rank 2 or more, not {}", ToText(a)));
  if (w.shape.size() != 3 || (w.dtype != DType::kU8 && (w.dtype != DType::kI8 || bits != 8)))
    return Invalid(fmt::format("the weights {} cannot hold numbers of {} bits", ToText(w), bits));
  if (a.shape.back() != w.shape[1] * w.shape[2] * PerByte(call))
    return Invalid(
        fmt::format("the weights {} of {} bits do not fit {}", ToText(w), bits, ToText(a)));
  const TensorType groups = {DType::kF32, {w.shape[0], w.shape[1]}};
  for (size_t i = 2; i < call.inputs.size(); ++i) {
    if (call.inputs[i].present && call.inputs[i].type != groups)
      return Invalid(fmt::format("scale or offset must be {}, not {}", ToText(groups),
                                 ToText(call.inputs[i].type)));
  }
  Shape shape = a.shape;
  shape.back() = w.shape[0];
  return Types{{DType::kF32, std::move(shape)}};
}

/// One sum of products of a and weights made in registers; what all terms of a column share stands
/// behind it.
absl::StatusOr<std::vector<int>> ExpressMatMulNarrow(const OpCall& call, WorkloadBuilder& builder,
                                                     const std::vector<int>& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferMatMulNarrow(call));
  const Shape& shape = types[0].shape;
  const Shape& w = call.inputs[1].type.shape;
  const auto rank = static_cast<int>(shape.size());
  const int64_t per_byte = PerByte(call);
  Shape reduce;
  if (w[1] > 1) reduce.push_back(w[1]);
  reduce.push_back(w[2]);
  if (per_byte > 1) reduce.push_back(per_byte);
  const Expr column = ir::Var(rank - 1);
  const Expr group = w[1] > 1 ? ir::Var(rank) : ir::Int(0);
  const Expr byte = ir::Var(rank + (w[1] > 1 ? 1 : 0));
  Expr q = ir::Cast(DType::kI32, builder.At(tensors[1], {column, group, byte}));
  Expr term = group * w[2] + byte;
  if (per_byte > 1) {
    const Expr half = ir::Var(rank + static_cast<int>(reduce.size()) - 1);
    q = ir::Binary(ir::BinaryOp::kShr, q, ir::Cast(DType::kI32, half * kHalfBits));
    q = ir::Binary(ir::BinaryOp::kAnd, q, ir::ConstInt(DType::kI32, 15));
    term = term * per_byte + half;
  }
  if (const int64_t zero = call.Int("zero", 0); zero != 0) q = q - ir::ConstInt(DType::kI32, zero);
  Expr weight = ir::Cast(DType::kF32, q);
  const bool has_offset = call.inputs.size() > 3 && call.inputs[3].present;
  const bool behind = w[1] == 1 && !has_offset;
  if (!behind) weight = weight * builder.At(tensors[2], {column, group});
  if (has_offset) weight = weight + builder.At(tensors[3], {column, group});
  Exprs at = Axes(shape.size() - 1);
  at.push_back(term);
  int y = builder.AddReduce(shape, reduce, ir::Combiner::kSum, builder.At(tensors[0], at) * weight);
  if (behind)
    y = builder.AddMap(
        shape, builder.At(y, Axes(shape.size())) * builder.At(tensors[2], {column, ir::Int(0)}));
  return std::vector<int>{y};
}

constexpr OpDefinition kOps[] = {{"MatMulNarrow", InferMatMulNarrow, ExpressMatMulNarrow}};

}  // namespace

std::span<const OpDefinition> MatMulNarrowOps() { return kOps; }

}  // namespace hone::graph::ops
