#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// Cumulative sums and products: a scan.
namespace hone::graph::ops {
namespace {

using ir::DType;
using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

absl::StatusOr<Types> InferCumulate(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  HONE_RETURN_IF_ERROR(ResolveAxis(call.Int("axis", 0), x.shape.size()).status());
  if (ir::IsBool(x.dtype)) return Invalid("bool cannot be summed");
  const std::string fn = call.String("fn", "add");
  if (fn != "add" && fn != "mul") return Invalid(fmt::format("unknown function '{}'", fn));
  return Types{x};
}

/// total[t, rest…] = total[t-1, rest…] op x[…t…]; exclusive sums take x one step earlier, reverse
/// ones run from the end. The scan's axis is the first, so a map puts it back in its place.
absl::StatusOr<Tensors> ExpressCumulate(const OpCall& call, WorkloadBuilder& builder,
                                        const Tensors& tensors) {
  const TensorType& x = call.inputs[0].type;
  HONE_ASSIGN_OR_RETURN(const int64_t axis, ResolveAxis(call.Int("axis", 0), x.shape.size()));
  const bool exclusive = call.Int("exclusive", 0) != 0;
  const bool reverse = call.Int("reverse", 0) != 0;
  const bool product = call.String("fn", "add") == "mul";
  const DType accumulator = AccumulatorType(x.dtype);
  const int64_t steps = x.shape[static_cast<size_t>(axis)];
  Shape shape = x.shape;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin(), steps);

  const Exprs point = Axes(shape.size());
  const Expr t = point[0];
  const Expr source = exclusive ? t - 1 : t;
  Exprs at(point.begin() + 1, point.end());
  at.insert(at.begin() + axis, reverse ? ir::Int(steps - 1) - source : source);
  const Expr neutral = ir::Const(accumulator, product ? 1 : 0);
  Expr term = ir::Cast(accumulator, builder.At(tensors[0], at));
  if (exclusive) term = ir::Select(ir::Ge(t, ir::Int(1)), term, neutral);
  const int total = builder.ReserveResult(accumulator, shape);
  Exprs before = point;
  before[0] = t - 1;
  const Expr carried = ir::Select(ir::Ge(t, ir::Int(1)), builder.At(total, before), neutral);
  ir::Stage stage;
  stage.spatial = shape;
  stage.body = {product ? carried * term : carried + term};
  stage.results = {total};
  stage.scan = builder.AddScan();
  builder.AddStage(std::move(stage));

  // Along the first axis the sums stand where they are wanted.
  if (axis == 0 && !reverse && accumulator == x.dtype) return Tensors{total};
  Exprs back = Axes(x.shape.size());
  const Expr step = back[static_cast<size_t>(axis)];
  back.erase(back.begin() + axis);
  back.insert(back.begin(), reverse ? ir::Int(steps - 1) - step : step);
  return Tensors{builder.AddMap(x.shape, ir::Cast(x.dtype, builder.At(total, back)))};
}

constexpr OpDefinition kOps[] = {{"CumSum", InferCumulate, ExpressCumulate}};

}  // namespace

std::span<const OpDefinition> CumSumOps() { return kOps; }

}  // namespace hone::graph::ops
