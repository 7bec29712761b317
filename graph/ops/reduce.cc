#include <limits>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// Reduce and ArgReduce.
namespace hone::graph::ops {
namespace {

using ir::BinaryOp;
using ir::Combiner;
using ir::DType;
using ir::Expr;
using ir::UnaryOp;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

/// What is reduced: `reduced[d]` says whether axis d goes.
struct Frame {
  std::vector<bool> reduced;
  Shape reduce;
  Shape output;
  Exprs at;  ///< indices of the input over the output's axes and the reduce axes
};

absl::StatusOr<Frame> FrameOf(const OpCall& call, const Shape& axes, bool keepdims) {
  const Shape& shape = call.inputs[0].type.shape;
  Frame frame;
  frame.reduced.assign(shape.size(), false);
  for (int64_t axis : axes) {
    HONE_ASSIGN_OR_RETURN(const int64_t resolved, ResolveAxis(axis, shape.size()));
    if (frame.reduced[static_cast<size_t>(resolved)])
      return Invalid(fmt::format("axis {} is named twice", axis));
    frame.reduced[static_cast<size_t>(resolved)] = true;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (frame.reduced[d]) frame.reduce.push_back(shape[d]);
    if (!frame.reduced[d] || keepdims) frame.output.push_back(frame.reduced[d] ? 1 : shape[d]);
  }
  int kept = 0;
  int gone = static_cast<int>(frame.output.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    frame.at.push_back(ir::Var(frame.reduced[d] ? gone++ : kept));
    if (!frame.reduced[d] || keepdims) ++kept;
  }
  return frame;
}

absl::StatusOr<Frame> ReduceFrame(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  return FrameOf(call, call.Ints("axes"), call.Int("keepdims", 1) != 0);
}

bool TakesFloatsOnly(std::string_view fn) {
  return fn == "l2" || fn == "log_sum" || fn == "log_sum_exp";
}

absl::StatusOr<Types> InferReduce(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(Frame frame, ReduceFrame(call));
  const DType dtype = call.inputs[0].type.dtype;
  const std::string fn = call.String("fn", "");
  static constexpr std::string_view kNames[] = {"sum",     "mean",        "max", "min",
                                                "prod",    "l1",          "l2",  "sum_square",
                                                "log_sum", "log_sum_exp", "any", "all"};
  if (std::find(std::begin(kNames), std::end(kNames), fn) == std::end(kNames)) {
    return Invalid(fmt::format("unknown function '{}'", fn));
  }
  const bool logical = fn == "any" || fn == "all";
  const bool order = fn == "max" || fn == "min";
  if ((logical && !ir::IsBool(dtype)) || (ir::IsBool(dtype) && !logical && !order) ||
      (TakesFloatsOnly(fn) && !ir::IsFloat(dtype))) {
    return Invalid(fmt::format("{} does not take {}", fn, ToString(dtype)));
  }
  return Types{{dtype, std::move(frame.output)}};
}

Combiner CombinerOf(std::string_view fn) {
  if (fn == "max" || fn == "any") return Combiner::kMax;
  if (fn == "min" || fn == "all") return Combiner::kMin;
  if (fn == "prod") return Combiner::kProduct;
  return Combiner::kSum;
}

/// log(sum(exp(x))) as max + log(sum(exp(x - max))); an infinite maximum is taken as zero.
int AddLogSumExp(WorkloadBuilder& builder, const Frame& frame, const Expr& x) {
  if (frame.reduce.empty()) return builder.AddMap(frame.output, x);
  const int max = builder.AddReduce(frame.output, frame.reduce, Combiner::kMax, x);
  const Exprs point = Axes(frame.output.size());
  const Expr top = builder.At(max, point);
  const Expr zero = ir::Const(top->dtype, 0);
  const Expr shift = ir::Select(ir::Unary(UnaryOp::kIsInf, top), zero, top);
  const int sum = builder.AddReduce(frame.output, frame.reduce, Combiner::kSum,
                                    ir::Unary(UnaryOp::kExp, x - shift));
  return builder.AddMap(frame.output, ir::Unary(UnaryOp::kLog, builder.At(sum, point)) + shift);
}

absl::StatusOr<Tensors> ExpressReduce(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Frame frame, ReduceFrame(call));
  const std::string fn = call.String("fn", "");
  const DType dtype = call.inputs[0].type.dtype;
  const bool order = CombinerOf(fn) == Combiner::kMax || CombinerOf(fn) == Combiner::kMin;
  const DType accumulator = order ? dtype : AccumulatorType(dtype);
  Expr x = ir::Cast(accumulator, builder.At(tensors[0], frame.at));
  const Exprs point = Axes(frame.output.size());
  int y = 0;
  if (fn == "log_sum_exp") {
    y = AddLogSumExp(builder, frame, x);
  } else {
    if (fn == "l1" && !ir::IsUnsigned(dtype)) x = ir::Unary(UnaryOp::kAbs, x);
    if (fn == "l2" || fn == "sum_square") x = x * x;
    y = frame.reduce.empty() ? builder.AddMap(frame.output, x)
                             : builder.AddReduce(frame.output, frame.reduce, CombinerOf(fn), x);
  }
  const Expr total = builder.At(y, point);
  Expr result = total;
  if (fn == "mean") {
    int64_t count = 1;
    for (int64_t extent : frame.reduce) count *= extent;
    result =
        ir::IsFloat(dtype)
            ? ir::Binary(BinaryOp::kDiv, total, ir::Const(accumulator, static_cast<double>(count)))
            : ir::Binary(BinaryOp::kTruncDiv, total, ir::ConstInt(accumulator, count));
  } else if (fn == "l2") {
    result = ir::Unary(UnaryOp::kSqrt, total);
  } else if (fn == "log_sum") {
    result = ir::Unary(UnaryOp::kLog, total);
  }
  result = ir::Cast(dtype, result);
  return Tensors{result == total ? y : builder.AddMap(frame.output, result)};
}

absl::StatusOr<Frame> ArgFrame(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  return FrameOf(call, {call.Int("axis", 0)}, call.Int("keepdims", 1) != 0);
}

absl::StatusOr<Types> InferArgReduce(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(Frame frame, ArgFrame(call));
  const std::string fn = call.String("fn", "");
  if (fn != "max" && fn != "min") return Invalid(fmt::format("unknown function '{}'", fn));
  return Types{{DType::kI64, std::move(frame.output)}};
}

/// Elements along a contiguous axis from which on two reductions, whose lanes combine, beat pairs
/// of value and index, whose lanes cannot.
constexpr int64_t kLongRow = 32;

/// Whether the axis is contiguous, long, and read from memory: what is computed anew for the second
/// reduction might be rounded otherwise and be found nowhere.
bool IsLongRow(const ir::Tensor& x, const Frame& frame) {
  if (x.kind != ir::TensorKind::kInput && x.kind != ir::TensorKind::kConstant) return false;
  const Shape& shape = x.shape;
  int64_t inner = 1;
  for (size_t d = shape.size(); d-- > 0 && !frame.reduced[d];) inner *= shape[d];
  return inner == 1 && frame.reduce.size() == 1 && frame.reduce[0] >= kLongRow &&
         frame.reduce[0] < std::numeric_limits<int32_t>::max();
}

/// The extreme value of each row, then the first (or last) place where it stands. It is NaN where a
/// row has any NaN: then the first of those counts.
int AddRowIndex(WorkloadBuilder& builder, const Frame& frame, const Expr& x, Combiner value,
                bool last) {
  const Exprs point = Axes(frame.output.size());
  const Expr extreme = builder.At(builder.AddReduce(frame.output, frame.reduce, value, x), point);
  Expr here = ir::Binary(BinaryOp::kEq, x, extreme);
  if (ir::IsFloat(x->dtype)) here = ir::Binary(BinaryOp::kOr, here, ir::Unary(UnaryOp::kIsNan, x));
  const Expr place = ir::Cast(DType::kI32, ir::Var(static_cast<int>(frame.output.size())));
  const Expr never = ir::ConstInt(DType::kI32, last ? -1 : std::numeric_limits<int32_t>::max());
  const int index =
      builder.AddReduce(frame.output, frame.reduce, last ? Combiner::kMax : Combiner::kMin,
                        ir::Select(std::move(here), place, never));
  return builder.AddMap(frame.output, ir::Cast(DType::kI64, builder.At(index, point)));
}

absl::StatusOr<Tensors> ExpressArgReduce(const OpCall& call, WorkloadBuilder& builder,
                                         const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Frame frame, ArgFrame(call));
  const bool max = call.String("fn", "") == "max";
  const bool last = call.Int("select_last", 0) != 0;
  if (IsLongRow(builder.tensor(tensors[0]), frame)) {
    return Tensors{AddRowIndex(builder, frame, builder.At(tensors[0], frame.at),
                               max ? Combiner::kMax : Combiner::kMin, last)};
  }
  ir::Stage stage;
  stage.spatial = frame.output;
  stage.reduce = frame.reduce;
  stage.combiner = max ? (last ? Combiner::kArgMaxLast : Combiner::kArgMax)
                       : (last ? Combiner::kArgMinLast : Combiner::kArgMin);
  stage.body = {builder.At(tensors[0], frame.at), ir::Var(static_cast<int>(frame.output.size()))};
  return Tensors{builder.AddStage(std::move(stage))[1]};
}

constexpr OpDefinition kOps[] = {
    {"Reduce", InferReduce, ExpressReduce},
    {"ArgReduce", InferArgReduce, ExpressArgReduce},
};

}  // namespace

std::span<const OpDefinition> ReduceOps() { return kOps; }

}  // namespace hone::graph::ops
