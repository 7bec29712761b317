#include <algorithm>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"
#include "graph/ops/window.h"

// Pool: a pad Stage with the identity, the reduction, and for averages a division by the exact
// counts.
namespace hone::graph::ops {
namespace {

using ir::DType;
using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

struct Geometry {
  DataLayout layout;
  std::vector<WindowAxis> axes;
  Shape output;
};

absl::StatusOr<Geometry> GeometryOf(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  Geometry g;
  HONE_ASSIGN_OR_RETURN(g.layout, DataLayout::Of(call));
  const Rounding rounding = call.Int("ceil_mode", 0) != 0 ? Rounding::kCeil : Rounding::kFloor;
  HONE_ASSIGN_OR_RETURN(g.axes, WindowAxes(call, g.layout, call.Ints("kernel"), rounding));
  for (WindowAxis& axis : g.axes) {
    const int64_t reach = std::max<int64_t>(1, axis.pad_begin + axis.input);
    axis.taps = std::min(axis.kernel, (reach + axis.dilation - 1) / axis.dilation);
  }
  g.output = call.inputs[0].type.shape;
  for (size_t i = 0; i < g.axes.size(); ++i)
    g.output[g.layout.first_spatial + i] = g.axes[i].output;
  return g;
}

absl::StatusOr<Types> InferPool(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(Geometry g, GeometryOf(call));
  const DType dtype = call.inputs[0].type.dtype;
  const std::string kind = call.String("kind", "");
  if (kind == "max") {
    if (ir::IsBool(dtype)) return Invalid("bool cannot be pooled");
  } else if (kind == "average" || kind == "lp") {
    if (!ir::IsFloat(dtype))
      return Invalid(fmt::format("{} pooling takes floats, not {}", kind, ToString(dtype)));
  } else {
    return Invalid(fmt::format("unknown kind '{}'", kind));
  }
  if (call.num_outputs > 1 && kind != "max") return Invalid("only max pooling has indices");
  return Types{{dtype, g.output}, {DType::kI64, g.output}};
}

Exprs WindowPoint(const Geometry& g) {
  Exprs at = Axes(g.output.size());
  for (size_t i = 0; i < g.axes.size(); ++i) {
    const size_t d = g.layout.first_spatial + i;
    at[d] = WindowIndex(g.axes[i], at[d], ir::Var(static_cast<int>(g.output.size() + i)));
  }
  return at;
}

/// How many taps of the window at `out` lie inside [0, limit) of the padded axis, where the axis
/// starts at `from`.
Expr CountInside(const WindowAxis& axis, const Expr& out, int64_t from, int64_t limit) {
  const Expr start = out * axis.stride;
  const auto taps_below = [&](int64_t bound) {  // taps with start + d*k < bound, of `kernel`
    const Expr below = ir::FloorDiv(ir::Int(bound + axis.dilation - 1) - start, axis.dilation);
    return ir::Max(ir::Min(below, ir::Int(axis.kernel)), ir::Int(0));
  };
  return taps_below(limit) - taps_below(from);
}

/// The number of elements an average divides by: an i64 constant when it is the same everywhere.
Expr Divisor(const OpCall& call, const Geometry& g) {
  const bool with_padding = call.Int("count_include_pad", 0) != 0;
  Expr divisor = ir::Int(1);
  for (size_t i = 0; i < g.axes.size(); ++i) {
    const WindowAxis& axis = g.axes[i];
    const int64_t from = with_padding ? 0 : axis.pad_begin;
    const int64_t limit = axis.pad_begin + axis.input + (with_padding ? axis.pad_end : 0);
    const int64_t last = (axis.output - 1) * axis.stride + (axis.kernel - 1) * axis.dilation;
    const bool everywhere = from <= 0 && last < limit;
    const Expr out = ir::Var(static_cast<int>(g.layout.first_spatial + i));
    divisor = divisor * (everywhere
                             ? ir::Int(axis.kernel)
                             : CountInside(axis, axis.output == 1 ? ir::Int(0) : out, from, limit));
  }
  return divisor;
}

Tensors ExpressMax(const OpCall& call, WorkloadBuilder& builder, const Geometry& g, int x) {
  const DType dtype = call.inputs[0].type.dtype;
  const int padded = AddPadStage(builder, x, g.layout, g.axes, Lowest(dtype));
  Shape window;
  for (const WindowAxis& axis : g.axes) window.push_back(axis.taps);
  const Exprs at = WindowPoint(g);
  if (call.num_outputs < 2) {
    return {builder.AddReduce(g.output, window, ir::Combiner::kMax, builder.At(padded, at))};
  }
  // Position in the flattened unpadded tensor, row-major or (storage_order 1) with the spatial axes
  // column-major.
  const Shape& shape = call.inputs[0].type.shape;
  const bool column_major = call.Int("storage_order", 0) != 0;
  Expr flat = ir::Var(0) * shape[1] + ir::Var(1);
  Exprs inner;
  Shape extents;
  for (size_t i = 0; i < g.axes.size(); ++i) {
    inner.push_back(at[2 + i] - g.axes[i].pad_begin);
    extents.push_back(shape[2 + i]);
  }
  if (column_major) {
    std::reverse(inner.begin(), inner.end());
    std::reverse(extents.begin(), extents.end());
  }
  for (size_t i = 0; i < inner.size(); ++i) flat = flat * extents[i] + inner[i];
  ir::Stage stage;
  stage.spatial = g.output;
  stage.reduce = std::move(window);
  stage.combiner = ir::Combiner::kArgMax;
  stage.body = {builder.At(padded, at), std::move(flat)};
  return builder.AddStage(std::move(stage));
}

absl::StatusOr<Tensors> ExpressPool(const OpCall& call, WorkloadBuilder& builder,
                                    const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(call));
  const DType dtype = call.inputs[0].type.dtype;
  const std::string kind = call.String("kind", "");
  if (kind == "max") return ExpressMax(call, builder, g, tensors[0]);
  const DType accumulator = AccumulatorType(dtype);
  const int x = AddPadStage(builder, tensors[0], g.layout, g.axes, ir::Const(dtype, 0));
  Shape window;
  for (const WindowAxis& axis : g.axes) window.push_back(axis.taps);
  const Exprs point = Axes(g.output.size());
  Expr tap = ir::Cast(accumulator, builder.At(x, WindowPoint(g)));
  const int64_t p = call.Int("p", 2);
  if (kind == "lp") {
    tap = ir::Unary(ir::UnaryOp::kAbs, tap);
    if (p == 2) tap = tap * tap;
    if (p != 1 && p != 2)
      tap = ir::Binary(ir::BinaryOp::kPow, tap, ir::Const(accumulator, static_cast<double>(p)));
  }
  const int sum =
      builder.AddReduce(g.output, std::move(window), ir::Combiner::kSum, std::move(tap));
  Expr result = builder.At(sum, point);
  if (kind == "average") {
    const Expr divisor = Divisor(call, g);
    const auto constant = ir::AsInt(divisor);
    result = ir::Binary(ir::BinaryOp::kDiv, result,
                        constant ? ir::Const(accumulator, static_cast<double>(*constant))
                                 : ir::Cast(accumulator, divisor));
  } else if (p == 2) {
    result = ir::Unary(ir::UnaryOp::kSqrt, result);
  } else if (p != 1) {
    result = ir::Binary(ir::BinaryOp::kPow, result,
                        ir::Const(accumulator, 1.0 / static_cast<double>(p)));
  }
  return Tensors{builder.AddMap(g.output, ir::Cast(dtype, result))};
}

constexpr OpDefinition kOps[] = {{"Pool", InferPool, ExpressPool}};

}  // namespace

std::span<const OpDefinition> PoolOps() { return kOps; }

}  // namespace hone::graph::ops
