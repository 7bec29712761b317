#include <algorithm>
#include <map>
#include <optional>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// MatMul and Einsum: one sum over products of loads.
namespace hone::graph::ops {
namespace {

using ir::DType;
using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

absl::StatusOr<Shape> ProductShape(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 2));
  const TensorType& a = call.inputs[0].type;
  const TensorType& b = call.inputs[1].type;
  if (a.shape.size() < 2 || b.shape.size() < 2)
    return Invalid("both operands must have rank 2 or more");
  const bool transpose_a = call.Int("transpose_a", 0) != 0;
  const bool transpose_b = call.Int("transpose_b", 0) != 0;
  const int64_t m = a.shape[a.shape.size() - (transpose_a ? 1 : 2)];
  const int64_t k = a.shape[a.shape.size() - (transpose_a ? 2 : 1)];
  const int64_t other_k = b.shape[b.shape.size() - (transpose_b ? 1 : 2)];
  const int64_t n = b.shape[b.shape.size() - (transpose_b ? 2 : 1)];
  if (k != other_k) return Invalid(fmt::format("inner extents {} and {} differ", k, other_k));
  HONE_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(Shape(a.shape.begin(), a.shape.end() - 2),
                                                     Shape(b.shape.begin(), b.shape.end() - 2)));
  shape.push_back(m);
  shape.push_back(n);
  return shape;
}

absl::StatusOr<Types> InferMatMul(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(Shape shape, ProductShape(call));
  const DType dtype = call.inputs[0].type.dtype;
  const DType other = call.inputs[1].type.dtype;
  const bool half_weights = dtype == DType::kF32 && other == DType::kF16;
  if ((dtype != other && !half_weights) || ir::IsBool(dtype)) {
    return Invalid(fmt::format("both operands must have the same numeric type, not {} and {}",
                               ToString(dtype), ToString(other)));
  }
  HONE_ASSIGN_OR_RETURN(const DType result, ProductType(call, dtype));
  return Types{{result, std::move(shape)}};
}

/// Indices of one operand: broadcast batch axes, then `row` and `column`.
Exprs OperandIndices(const Shape& shape, const Exprs& batch, bool transposed, const Expr& row,
                     const Expr& column) {
  Exprs indices;
  const size_t own = shape.size() - 2;
  for (size_t d = 0; d < own; ++d)
    indices.push_back(shape[d] == 1 ? ir::Int(0) : batch[batch.size() - own + d]);
  indices.push_back(transposed ? column : row);
  indices.push_back(transposed ? row : column);
  return indices;
}

/// The operands' loads at row i, column j and inner index k over the result's axes.
struct Factors {
  Expr left;
  Expr right;
  int64_t inner = 0;
};

Factors FactorsOf(const OpCall& call, const WorkloadBuilder& builder, const Tensors& tensors,
                  size_t rank) {
  const Shape& a = call.inputs[0].type.shape;
  const bool transpose_a = call.Int("transpose_a", 0) != 0;
  const bool transpose_b = call.Int("transpose_b", 0) != 0;
  const Exprs batch = Axes(rank - 2);
  const Expr i = ir::Var(static_cast<int>(rank) - 2);
  const Expr j = ir::Var(static_cast<int>(rank) - 1);
  const Expr k = ir::Var(static_cast<int>(rank));
  return {
      builder.At(tensors[0], OperandIndices(a, batch, transpose_a, i, k)),
      builder.At(tensors[1], OperandIndices(call.inputs[1].type.shape, batch, transpose_b, k, j)),
      a[a.size() - (transpose_a ? 2 : 1)]};
}

absl::StatusOr<Tensors> ExpressMatMul(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Shape shape, ProductShape(call));
  const DType dtype = call.inputs[0].type.dtype;
  const DType accumulator = AccumulatorType(dtype);
  HONE_ASSIGN_OR_RETURN(const DType result, ProductType(call, dtype));
  const Factors factors = FactorsOf(call, builder, tensors, shape.size());
  int y =
      builder.AddReduce(shape, {factors.inner}, ir::Combiner::kSum,
                        ir::Cast(accumulator, factors.left) * ir::Cast(accumulator, factors.right));
  if (accumulator != result)
    y = builder.AddMap(shape, ir::Cast(result, builder.At(y, Axes(shape.size()))));
  return Tensors{y};
}

// MatMulInteger: inputs a, b, zero point of a? (one, or one per row), of b? (one, or one per
// column).

absl::StatusOr<Types> InferMatMulInteger(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(Shape shape, ProductShape(call));
  for (size_t i = 0; i < 2; ++i) {
    const DType dtype = call.inputs[i].type.dtype;
    if (dtype != DType::kI8 && dtype != DType::kU8)
      return Invalid(fmt::format("it takes i8 and u8, not {}", ToString(dtype)));
    if (call.inputs.size() <= 2 + i || !call.inputs[2 + i].present) continue;
    const TensorType& zero = call.inputs[2 + i].type;
    const int64_t own = shape[shape.size() - 2 + i];
    if (zero.dtype != dtype || zero.shape.size() > 1 ||
        (zero.NumElements() != 1 && zero.NumElements() != own)) {
      return Invalid(fmt::format("the zero point {} does not fit {}", ToText(zero),
                                 ToText(call.inputs[i].type)));
    }
  }
  return Types{{DType::kI32, std::move(shape)}};
}

/// An operand of MatMulInteger as bytes of the other sign, 128 away; its zero point with it.
struct Bytes {
  Expr factor;  ///< at row or column and inner index
  Expr zero;    ///< null: 0
};

/// Machines multiply unsigned by signed bytes at once: of two of one sign one moves by 128, the
/// second, whose panels are copied anyway, or the first of signed ones where the second is
/// constant: then the sums that its zero point asks for are constants too.
void MoveOne(const OpCall& call, WorkloadBuilder& builder, const Tensors& tensors, Bytes* a,
             Bytes* b) {
  const DType dtype = call.inputs[0].type.dtype;
  if (dtype != call.inputs[1].type.dtype) return;
  const bool from_unsigned = ir::IsUnsigned(dtype);
  const size_t moved = !from_unsigned && call.inputs[1].constant != nullptr ? 0 : 1;
  const Shape& shape = call.inputs[moved].type.shape;
  const Expr half = ir::ConstInt(dtype, from_unsigned ? 128 : -128);
  const DType other = from_unsigned ? DType::kI8 : DType::kU8;
  const Expr own = builder.At(tensors[moved], Axes(shape.size()));
  const int bytes =
      builder.AddMap(shape, ir::Cast(other, ir::Binary(ir::BinaryOp::kXor, own, half)));
  Bytes& operand = moved == 0 ? *a : *b;
  operand.factor = ir::Load(bytes, other, operand.factor->args);
  const int64_t shift = from_unsigned ? -128 : 128;
  const std::optional<int64_t> known = operand.zero == nullptr ? 0 : ir::AsInt(operand.zero);
  operand.zero = known ? ir::ConstInt(DType::kI32, *known + shift)
                       : operand.zero + ir::ConstInt(DType::kI32, shift);
}

/// Σ (a - za)(b - zb) = Σ a·b - zb Σ a - za Σ b + k·za·zb, so that the contraction runs on raw
/// bytes.
absl::StatusOr<Tensors> ExpressMatMulInteger(const OpCall& call, WorkloadBuilder& builder,
                                             const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Shape shape, ProductShape(call));
  const Factors factors = FactorsOf(call, builder, tensors, shape.size());
  const auto wide = [](const Expr& e) { return ir::Cast(DType::kI32, e); };
  const Exprs point = Axes(shape.size());
  const auto zero_point = [&](size_t i, const Expr& own) -> Expr {
    if (call.inputs.size() <= i || !call.inputs[i].present) return nullptr;
    const Shape& zero = call.inputs[i].type.shape;
    const Expr read = ReadAt(call, builder, tensors, i,
                             Exprs(zero.size(), zero.empty() || zero[0] == 1 ? ir::Int(0) : own));
    const std::optional<int64_t> known = ir::AsInt(read);
    return known ? ir::ConstInt(DType::kI32, *known) : wide(read);
  };
  Bytes a = {factors.left, zero_point(2, point[point.size() - 2])};
  Bytes b = {factors.right, zero_point(3, point[point.size() - 1])};
  MoveOne(call, builder, tensors, &a, &b);
  const int raw = builder.AddReduce(shape, {factors.inner}, ir::Combiner::kSum,
                                    wide(a.factor) * wide(b.factor));
  const auto is_zero = [](const Expr& e) { return e == nullptr || ir::AsInt(e) == 0; };
  if (is_zero(a.zero) && is_zero(b.zero)) return Tensors{raw};
  // Sums over the inner axis keep the other operand's axis as one of extent 1.
  const auto sum_of = [&](const Expr& factor, size_t gone) {
    Shape sums = shape;
    sums[gone] = 1;
    Exprs at = point;
    at[gone] = ir::Int(0);
    return builder.At(builder.AddReduce(sums, {factors.inner}, ir::Combiner::kSum, wide(factor)),
                      at);
  };
  Expr result = builder.At(raw, point);
  if (!is_zero(b.zero)) result = result - b.zero * sum_of(a.factor, shape.size() - 1);
  if (!is_zero(a.zero)) result = result - a.zero * sum_of(b.factor, shape.size() - 2);
  if (!is_zero(a.zero) && !is_zero(b.zero))
    result = result + a.zero * b.zero * ir::ConstInt(DType::kI32, factors.inner);
  return Tensors{builder.AddMap(shape, result)};
}

/// Einsum's attributes: `operands`, one string of letters per input, and `result`, the letters that
/// stay.
struct Subscripts {
  std::vector<std::string> operands;
  std::string result;
  std::string summed;  ///< in order of appearance
  std::map<char, int64_t> extents;
};

absl::StatusOr<Subscripts> SubscriptsOf(const OpCall& call) {
  Subscripts s;
  const auto found = call.attributes->find("operands");
  if (found != call.attributes->end()) {
    if (const auto* list = std::get_if<std::vector<std::string>>(&found->second))
      s.operands = *list;
  }
  s.result = call.String("result", "");
  if (s.operands.size() != call.inputs.size()) {
    return Invalid(fmt::format("the equation has {} operands, but the node has {} inputs",
                               s.operands.size(), call.inputs.size()));
  }
  for (size_t i = 0; i < s.operands.size(); ++i) {
    const Shape& shape = call.inputs[i].type.shape;
    if (shape.size() != s.operands[i].size()) {
      return Invalid(fmt::format("'{}' names {} axes, but input {} has {}", s.operands[i],
                                 s.operands[i].size(), i, shape.size()));
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      const char letter = s.operands[i][d];
      const auto [at, added] = s.extents.emplace(letter, shape[d]);
      if (!added && at->second != shape[d] && at->second != 1 && shape[d] != 1) {
        return Invalid(fmt::format("'{}' has extents {} and {}", letter, at->second, shape[d]));
      }
      at->second = std::max(at->second, shape[d]);
      if (added && s.result.find(letter) == std::string::npos) s.summed += letter;
    }
  }
  for (char letter : s.result) {
    if (std::count(s.result.begin(), s.result.end(), letter) > 1)
      return Invalid(fmt::format("the result '{}' names '{}' twice", s.result, letter));
    if (!s.extents.contains(letter))
      return Invalid(fmt::format("'{}' of the result is in no operand", letter));
  }
  return s;
}

absl::StatusOr<Types> InferEinsum(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, std::max<size_t>(1, call.inputs.size())));
  HONE_ASSIGN_OR_RETURN(const Subscripts s, SubscriptsOf(call));
  TensorType result{call.inputs[0].type.dtype, {}};
  if (ir::IsBool(result.dtype)) return Invalid("bool cannot be summed");
  for (const OpInput& input : call.inputs) {
    if (input.type.dtype != result.dtype) return Invalid("the operands have different types");
  }
  for (char letter : s.result) result.shape.push_back(s.extents.at(letter));
  return Types{std::move(result)};
}

absl::StatusOr<Tensors> ExpressEinsum(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferEinsum(call));
  HONE_ASSIGN_OR_RETURN(const Subscripts s, SubscriptsOf(call));
  const std::string letters = s.result + s.summed;
  const DType accumulator = AccumulatorType(types[0].dtype);
  Expr product;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    Exprs indices;
    for (size_t d = 0; d < s.operands[i].size(); ++d) {
      const bool broadcast = call.inputs[i].type.shape[d] == 1;
      indices.push_back(broadcast ? ir::Int(0)
                                  : ir::Var(static_cast<int>(letters.find(s.operands[i][d]))));
    }
    Expr factor = ir::Cast(accumulator, builder.At(tensors[i], std::move(indices)));
    product = product == nullptr ? std::move(factor) : std::move(product) * std::move(factor);
  }
  Shape reduce;
  for (char letter : s.summed) reduce.push_back(s.extents.at(letter));
  const Shape& shape = types[0].shape;
  int y = reduce.empty()
              ? builder.AddMap(shape, std::move(product))
              : builder.AddReduce(shape, std::move(reduce), ir::Combiner::kSum, std::move(product));
  if (accumulator != types[0].dtype)
    y = builder.AddMap(shape, ir::Cast(types[0].dtype, builder.At(y, Axes(shape.size()))));
  return Tensors{y};
}

constexpr OpDefinition kOps[] = {
    {"MatMul", InferMatMul, ExpressMatMul},
    {"MatMulInteger", InferMatMulInteger, ExpressMatMulInteger},
    {"Einsum", InferEinsum, ExpressEinsum},
};

}  // namespace

std::span<const OpDefinition> MatMulOps() { return kOps; }

}  // namespace hone::graph::ops
