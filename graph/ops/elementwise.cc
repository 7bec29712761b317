#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// Unary, Binary, Select, Cast.
namespace hone::graph::ops {
namespace {

using ir::DType;
using ir::Expr;
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

constexpr OpDefinition kOps[] = {
    {"Unary", InferUnary, ExpressUnary},
    {"Binary", InferBinary, ExpressBinary},
    {"Select", InferSelect, ExpressSelect},
    {"Cast", InferCast, ExpressCast},
};

}  // namespace

std::span<const OpDefinition> ElementwiseOps() { return kOps; }

}  // namespace hone::graph::ops
