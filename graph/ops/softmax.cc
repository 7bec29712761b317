#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// Softmax: max, exp(x - max), sum, times its reciprocal (or for the logarithm x - max - log(sum)).
// With zero_nan a row that has no probabilities, as all of it is -inf, is zeros instead of NaN.
namespace hone::graph::ops {
namespace {

using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::UnaryOp;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

absl::StatusOr<Types> InferSoftmax(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  HONE_RETURN_IF_ERROR(ResolveAxis(call.Int("axis", -1), x.shape.size()).status());
  if (!ir::IsFloat(x.dtype))
    return Invalid(fmt::format("it takes floats, not {}", ToString(x.dtype)));
  return Types{x};
}

absl::StatusOr<Tensors> ExpressSoftmax(const OpCall& call, WorkloadBuilder& builder,
                                       const Tensors& tensors) {
  const TensorType& x = call.inputs[0].type;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", -1), x.shape.size()));
  const auto a = static_cast<size_t>(axis);
  const bool logarithm = call.Int("log", 0) != 0;
  const DType accumulator = AccumulatorType(x.dtype);
  const int64_t extent = x.shape[a];

  Shape rows = x.shape;
  rows.erase(rows.begin() + axis);
  Exprs in_row = Axes(rows.size());  // the input's point inside a reduction over the row
  in_row.insert(in_row.begin() + axis, ir::Var(static_cast<int>(rows.size())));
  const Exprs point = Axes(x.shape.size());
  Exprs row = point;
  row.erase(row.begin() + axis);

  const int max = builder.AddReduce(rows, {extent}, Combiner::kMax, builder.At(tensors[0], in_row));
  const Expr shifted = ir::Cast(accumulator, builder.At(tensors[0], point)) -
                       ir::Cast(accumulator, builder.At(max, row));
  const int exponential = builder.AddMap(x.shape, ir::Unary(UnaryOp::kExp, shifted));
  const int sum =
      builder.AddReduce(rows, {extent}, Combiner::kSum, builder.At(exponential, in_row));
  const Expr total = builder.At(sum, row);
  // One division a row: the reciprocal does not depend on the position in it.
  const Expr inverse = ir::Binary(ir::BinaryOp::kDiv, ir::Const(accumulator, 1), total);
  Expr result = logarithm ? shifted - ir::Unary(UnaryOp::kLog, total)
                          : builder.At(exponential, point) * inverse;
  // A row is NaN as a whole: one of its exponentials makes the sum NaN.
  if (call.Int("zero_nan", 0) != 0)
    result = ir::Select(ir::Unary(UnaryOp::kIsNan, total), ir::Const(accumulator, 0), result);
  return Tensors{builder.AddMap(x.shape, ir::Cast(x.dtype, result))};
}

constexpr OpDefinition kOps[] = {{"Softmax", InferSoftmax, ExpressSoftmax}};

}  // namespace

std::span<const OpDefinition> SoftmaxOps() { return kOps; }

}  // namespace hone::graph::ops
