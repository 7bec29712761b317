#include <cmath>
#include <numbers>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// Unary, Binary, Select, Cast, Activation.
namespace hone::graph::ops {
namespace {

using ir::DType;
using ir::Expr;
using ir::UnaryOp;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

absl::StatusOr<ir::UnaryOp> UnaryFunction(const OpCall& call) {
  const std::string name = call.String("fn", "");
  if (const auto op = ir::ParseUnaryOp(name)) return *op;
  return Invalid(fmt::format("unknown function '{}'", name));
}

absl::StatusOr<ir::BinaryOp> BinaryFunction(const OpCall& call) {
  const std::string name = call.String("fn", "");
  if (const auto op = ir::ParseBinaryOp(name)) return *op;
  return Invalid(fmt::format("unknown function '{}'", name));
}

absl::StatusOr<Types> InferUnary(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  HONE_ASSIGN_OR_RETURN(const ir::UnaryOp op, UnaryFunction(call));
  const TensorType& x = call.inputs[0].type;
  const auto dtype = ir::ResultType(op, x.dtype);
  if (!dtype) return Invalid(fmt::format("{} does not take {}", ToString(op), ToString(x.dtype)));
  return Types{{*dtype, x.shape}};
}

absl::StatusOr<Tensors> ExpressUnary(const OpCall& call, WorkloadBuilder& builder,
                                     const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const ir::UnaryOp op, UnaryFunction(call));
  const Shape& shape = call.inputs[0].type.shape;
  return Tensors{
      builder.AddMap(shape, ir::Unary(op, ReadAt(call, builder, tensors, 0, Axes(shape.size()))))};
}

absl::Status RequireSameDType(const OpCall& call, size_t a, size_t b) {
  const DType left = call.inputs[a].type.dtype;
  const DType right = call.inputs[b].type.dtype;
  if (left == right) return absl::OkStatus();
  return Invalid(
      fmt::format("operands have different types {} and {}", ToString(left), ToString(right)));
}

absl::StatusOr<Types> InferBinary(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 2));
  HONE_ASSIGN_OR_RETURN(const ir::BinaryOp op, BinaryFunction(call));
  HONE_RETURN_IF_ERROR(RequireSameDType(call, 0, 1));
  const auto dtype = ir::ResultType(op, call.inputs[0].type.dtype);
  if (!dtype) {
    return Invalid(
        fmt::format("{} does not take {}", ToString(op), ToString(call.inputs[0].type.dtype)));
  }
  HONE_ASSIGN_OR_RETURN(Shape shape,
                        BroadcastShapes(call.inputs[0].type.shape, call.inputs[1].type.shape));
  return Types{{*dtype, std::move(shape)}};
}

absl::StatusOr<Tensors> ExpressBinary(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const ir::BinaryOp op, BinaryFunction(call));
  HONE_ASSIGN_OR_RETURN(const Types types, InferBinary(call));
  const Exprs point = Axes(types[0].shape.size());
  return Tensors{
      builder.AddMap(types[0].shape, ir::Binary(op, ReadBroadcast(call, builder, tensors, 0, point),
                                                ReadBroadcast(call, builder, tensors, 1, point)))};
}

absl::StatusOr<Types> InferSelect(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 3));
  if (!ir::IsBool(call.inputs[0].type.dtype)) {
    return Invalid(
        fmt::format("the condition must be bool, not {}", ToString(call.inputs[0].type.dtype)));
  }
  HONE_RETURN_IF_ERROR(RequireSameDType(call, 1, 2));
  HONE_ASSIGN_OR_RETURN(Shape shape,
                        BroadcastShapes(call.inputs[1].type.shape, call.inputs[2].type.shape));
  HONE_ASSIGN_OR_RETURN(shape, BroadcastShapes(call.inputs[0].type.shape, shape));
  return Types{{call.inputs[1].type.dtype, std::move(shape)}};
}

absl::StatusOr<Tensors> ExpressSelect(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferSelect(call));
  const Exprs point = Axes(types[0].shape.size());
  return Tensors{
      builder.AddMap(types[0].shape, ir::Select(ReadBroadcast(call, builder, tensors, 0, point),
                                                ReadBroadcast(call, builder, tensors, 1, point),
                                                ReadBroadcast(call, builder, tensors, 2, point)))};
}

absl::StatusOr<Types> InferCast(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const std::string to = call.String("to", "");
  const auto dtype = ir::ParseDType(to);
  if (!dtype) return Invalid(fmt::format("unknown type '{}'", to));
  return Types{{*dtype, call.inputs[0].type.shape}};
}

absl::StatusOr<Tensors> ExpressCast(const OpCall& call, WorkloadBuilder& builder,
                                    const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferCast(call));
  const Expr x = ReadAt(call, builder, tensors, 0, Axes(types[0].shape.size()));
  return Tensors{builder.AddMap(types[0].shape, ir::Cast(types[0].dtype, x))};
}

/// gelu, gelu_tanh, silu (x · sigmoid(alpha · x)), hard_sigmoid (alpha · x + beta within 0 and 1)
/// and hard_swish of x; null for another function.
Expr Activated(const OpCall& call, const Expr& x) {
  const std::string fn = call.String("fn", "");
  const auto constant = [&](double v) { return ir::Const(x->dtype, v); };
  const auto clamped = [&](const Expr& line) {
    return ir::Min(ir::Max(line, constant(0)), constant(1));
  };
  if (fn == "gelu") {
    const Expr erf = ir::Unary(UnaryOp::kErf, x * constant(1.0 / std::numbers::sqrt2));
    return x * constant(0.5) * (erf + constant(1));
  }
  if (fn == "gelu_tanh") {
    const Expr sum = x + x * x * x * constant(0.044715);
    const Expr tanh = ir::Unary(UnaryOp::kTanh, sum * constant(std::sqrt(2.0 / std::numbers::pi)));
    return x * constant(0.5) * (tanh + constant(1));
  }
  if (fn == "silu") {
    const double alpha = call.Float("alpha", 1);
    return x * ir::Unary(UnaryOp::kSigmoid, alpha == 1 ? x : x * constant(alpha));
  }
  if (fn == "hard_sigmoid")
    return clamped(x * constant(call.Float("alpha", 0.2)) + constant(call.Float("beta", 0.5)));
  if (fn == "hard_swish") return x * clamped(x * constant(1.0 / 6) + constant(0.5));
  return nullptr;
}

absl::StatusOr<Types> InferActivation(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  if (!ir::IsFloat(x.dtype))
    return Invalid(fmt::format("it takes floats, not {}", ToString(x.dtype)));
  if (Activated(call, ir::Const(x.dtype, 0)) == nullptr)
    return Invalid(fmt::format("unknown function '{}'", call.String("fn", "")));
  return Types{x};
}

/// In f32 at least, rounded once.
absl::StatusOr<Tensors> ExpressActivation(const OpCall& call, WorkloadBuilder& builder,
                                          const Tensors& tensors) {
  const TensorType& type = call.inputs[0].type;
  const Expr x = ir::Cast(AccumulatorType(type.dtype),
                          ReadAt(call, builder, tensors, 0, Axes(type.shape.size())));
  return Tensors{builder.AddMap(type.shape, ir::Cast(type.dtype, Activated(call, x)))};
}

constexpr OpDefinition kOps[] = {
    {"Unary", InferUnary, ExpressUnary},
    {"Binary", InferBinary, ExpressBinary},
    {"Select", InferSelect, ExpressSelect},
    {"Cast", InferCast, ExpressCast},
    {"Activation", InferActivation, ExpressActivation},
};

}  // namespace

std::span<const OpDefinition> ElementwiseOps() { return kOps; }

}  // namespace hone::graph::ops
