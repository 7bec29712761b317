#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// Normalise (layer, rms, instance, group over given axes), BatchNorm, LocalResponseNorm.
namespace hone::graph::ops {
namespace {

using ir::BinaryOp;
using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::UnaryOp;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

absl::StatusOr<std::vector<bool>> NormalisedAxes(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  if (!ir::IsFloat(x.dtype))
    return Invalid(fmt::format("it takes floats, not {}", ToString(x.dtype)));
  std::vector<bool> normalised(x.shape.size());
  for (int64_t axis : call.Ints("axes")) {
    HONE_ASSIGN_OR_RETURN(const int64_t resolved, ResolveAxis(axis, x.shape.size()));
    normalised[static_cast<size_t>(resolved)] = true;
  }
  return normalised;
}

/// Whether inputs 1 and 2 (scale, bias) broadcast into the input's shape.
absl::Status CheckScaleAndBias(const OpCall& call) {
  const TensorType& x = call.inputs[0].type;
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (!call.inputs[i].present) continue;
    HONE_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(x.shape, call.inputs[i].type.shape));
    if (shape != x.shape || call.inputs[i].type.dtype != x.dtype) {
      return Invalid(fmt::format("{} {} does not fit {}", i == 1 ? "scale" : "bias",
                                 ToText(call.inputs[i].type), ToText(x)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferNormalise(const OpCall& call) {
  HONE_RETURN_IF_ERROR(NormalisedAxes(call).status());
  HONE_RETURN_IF_ERROR(CheckScaleAndBias(call));
  return Types{call.inputs[0].type};
}

/// Row statistics: rows are the axes that stay; a row-wise reduction runs over the others.
struct Rows {
  Shape shape;
  Shape reduce;
  Exprs inner;  ///< the input's indices inside a reduction
  Exprs outer;  ///< a row's indices at a point of the input
  int64_t count = 1;
};

Rows RowsOf(const Shape& shape, const std::vector<bool>& normalised) {
  Rows rows;
  for (size_t d = 0; d < shape.size(); ++d)
    (normalised[d] ? rows.reduce : rows.shape).push_back(shape[d]);
  int row = 0;
  int tap = static_cast<int>(rows.shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    rows.inner.push_back(ir::Var(normalised[d] ? tap++ : row++));
    if (normalised[d]) rows.count *= shape[d];
    if (!normalised[d]) rows.outer.push_back(ir::Var(static_cast<int>(d)));
  }
  return rows;
}

absl::StatusOr<Tensors> ExpressNormalise(const OpCall& call, WorkloadBuilder& builder,
                                         const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const std::vector<bool> normalised, NormalisedAxes(call));
  const TensorType& x = call.inputs[0].type;
  const Rows rows = RowsOf(x.shape, normalised);
  const DType type = AccumulatorType(x.dtype);
  const Expr count = ir::Const(type, static_cast<double>(rows.count));
  const auto mean_of = [&](int sum, const Exprs& row) {
    return ir::Binary(BinaryOp::kDiv, builder.At(sum, row), count);
  };
  Expr inner = ir::Cast(type, builder.At(tensors[0], rows.inner));
  Expr centred = ir::Cast(type, builder.At(tensors[0], Axes(x.shape.size())));
  if (call.String("kind", "layer") != "rms") {
    const int sum = builder.AddReduce(rows.shape, rows.reduce, Combiner::kSum, inner);
    inner = inner - mean_of(sum, Axes(rows.shape.size()));
    centred = centred - mean_of(sum, rows.outer);
  }
  const int squares = builder.AddReduce(rows.shape, rows.reduce, Combiner::kSum, inner * inner);
  const Expr epsilon = ir::Const(type, call.Float("epsilon", 1e-5));
  Expr result = centred * ir::Unary(UnaryOp::kRsqrt, mean_of(squares, rows.outer) + epsilon);
  const Exprs point = Axes(x.shape.size());
  if (call.inputs.size() > 1 && call.inputs[1].present) {
    result = result * ir::Cast(type, ReadBroadcast(call, builder, tensors, 1, point));
  }
  if (call.inputs.size() > 2 && call.inputs[2].present) {
    result = result + ir::Cast(type, ReadBroadcast(call, builder, tensors, 2, point));
  }
  return Tensors{builder.AddMap(x.shape, ir::Cast(x.dtype, result))};
}

absl::StatusOr<size_t> ChannelAxis(const OpCall& call) {
  const size_t rank = call.inputs[0].type.shape.size();
  if (rank < 2) return rank;  // one channel
  return call.String("layout", "nchw") == "nhwc" ? rank - 1 : 1;
}

absl::StatusOr<Types> InferBatchNorm(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 5));
  const TensorType& x = call.inputs[0].type;
  if (!ir::IsFloat(x.dtype))
    return Invalid(fmt::format("it takes floats, not {}", ToString(x.dtype)));
  HONE_ASSIGN_OR_RETURN(const size_t axis, ChannelAxis(call));
  const int64_t channels = axis < x.shape.size() ? x.shape[axis] : 1;
  for (size_t i = 1; i < 5; ++i) {
    if (call.inputs[i].type.shape != Shape{channels} || !ir::IsFloat(call.inputs[i].type.dtype)) {
      return Invalid(fmt::format("input {} must have {} values, not {}", i, channels,
                                 ToText(call.inputs[i].type)));
    }
  }
  return Types{x};
}

absl::StatusOr<Tensors> ExpressBatchNorm(const OpCall& call, WorkloadBuilder& builder,
                                         const Tensors& tensors) {
  const TensorType& x = call.inputs[0].type;
  HONE_ASSIGN_OR_RETURN(const size_t axis, ChannelAxis(call));
  const Exprs point = Axes(x.shape.size());
  const Expr channel = axis < x.shape.size() ? point[axis] : ir::Int(0);
  const DType type = AccumulatorType(x.dtype);
  const auto at = [&](size_t i, const Expr& c) {
    return ir::Cast(type, ReadAt(call, builder, tensors, i, {c}));
  };
  const Expr epsilon = ir::Const(type, call.Float("epsilon", 1e-5));
  const int64_t channels = axis < x.shape.size() ? x.shape[axis] : 1;
  const Expr c = ir::Var(0);
  const int scale =
      builder.AddMap({channels}, at(1, c) * ir::Unary(UnaryOp::kRsqrt, at(4, c) + epsilon));
  const int shift = builder.AddMap({channels}, at(2, c) - at(3, c) * builder.At(scale, {c}));
  const Expr result = ir::Cast(type, builder.At(tensors[0], point)) * builder.At(scale, {channel}) +
                      builder.At(shift, {channel});
  return Tensors{builder.AddMap(x.shape, ir::Cast(x.dtype, result))};
}

absl::StatusOr<Types> InferLrn(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  if (!ir::IsFloat(x.dtype) || x.shape.size() < 2)
    return Invalid("it takes floats of rank 2 or more");
  const int64_t size = call.Int("size", 0);
  if (size < 1 || size > x.shape[1] + (int64_t{1} << 20))
    return Invalid(fmt::format("size {} is out of range", size));
  return Types{x};
}

/// x / (bias + alpha/size * sum of squares of `size` neighbouring channels)^beta.
absl::StatusOr<Tensors> ExpressLrn(const OpCall& call, WorkloadBuilder& builder,
                                   const Tensors& tensors) {
  const TensorType& x = call.inputs[0].type;
  const int64_t size = call.Int("size", 1);
  const int64_t before = (size - 1) / 2;
  const DType type = AccumulatorType(x.dtype);
  Shape padded = x.shape;
  padded[1] += size - 1;
  Exprs at = Axes(x.shape.size());
  at[1] = at[1] - before;
  const Expr inside = ir::InRange(at[1], x.shape[1]);
  const int pad =
      builder.AddMap(padded, ir::Select(inside, builder.At(tensors[0], at), ir::Const(x.dtype, 0)));
  const Exprs point = Axes(x.shape.size());
  Exprs tap = point;
  tap[1] = tap[1] + ir::Var(static_cast<int>(point.size()));
  const Expr value = ir::Cast(type, builder.At(pad, tap));
  const int sum = builder.AddReduce(x.shape, {size}, Combiner::kSum, value * value);
  const Expr scaled = builder.At(sum, point) *
                          ir::Const(type, call.Float("alpha", 1e-4) / static_cast<double>(size)) +
                      ir::Const(type, call.Float("bias", 1.0));
  const Expr power = ir::Binary(BinaryOp::kPow, scaled, ir::Const(type, call.Float("beta", 0.75)));
  const Expr result =
      ir::Binary(BinaryOp::kDiv, ir::Cast(type, builder.At(tensors[0], point)), power);
  return Tensors{builder.AddMap(x.shape, ir::Cast(x.dtype, result))};
}

constexpr OpDefinition kOps[] = {
    {"Normalise", InferNormalise, ExpressNormalise},
    {"BatchNorm", InferBatchNorm, ExpressBatchNorm},
    {"LocalResponseNorm", InferLrn, ExpressLrn},
};

}  // namespace

std::span<const OpDefinition> NormaliseOps() { return kOps; }

}  // namespace hone::graph::ops
