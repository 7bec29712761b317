#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"
#include "graph/ops/window.h"

// Conv: a pad Stage, the contraction, the bias.
namespace hone::graph::ops {
namespace {

using ir::DType;
using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

struct Geometry {
  DataLayout layout;
  std::vector<WindowAxis> axes;
  int64_t batch = 0;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t group = 1;
  int64_t group_in = 0;  ///< input channels of one group
  Shape output;
};

absl::StatusOr<Geometry> GeometryOf(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 2));
  const TensorType& x = call.inputs[0].type;
  const TensorType& w = call.inputs[1].type;
  Geometry g;
  HONE_ASSIGN_OR_RETURN(g.layout, DataLayout::Of(call));
  if (w.shape.size() != x.shape.size()) {
    return Invalid(fmt::format("the weights have rank {}, but the input has rank {}",
                               w.shape.size(), x.shape.size()));
  }
  g.batch = x.shape[0];
  g.in_channels = x.shape[g.layout.channel];
  g.out_channels = w.shape[0];
  g.group_in = w.shape[1];
  g.group = call.Int("group", 1);
  if (g.group < 1 || g.in_channels % g.group != 0 || g.out_channels % g.group != 0) {
    return Invalid(fmt::format("{} input and {} output channels do not split into {} groups",
                               g.in_channels, g.out_channels, g.group));
  }
  if (g.in_channels / g.group != g.group_in) {
    return Invalid(
        fmt::format("the weights have {} input channels in each group, but the input has {} "
                    "channels in {} groups",
                    g.group_in, g.in_channels, g.group));
  }
  HONE_ASSIGN_OR_RETURN(
      g.axes,
      WindowAxes(call, g.layout, Shape(w.shape.begin() + 2, w.shape.end()), Rounding::kFloor));
  g.output = x.shape;
  g.output[g.layout.channel] = g.out_channels;
  for (size_t i = 0; i < g.axes.size(); ++i)
    g.output[g.layout.first_spatial + i] = g.axes[i].output;
  return g;
}

absl::StatusOr<Types> InferConv(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(Geometry g, GeometryOf(call));
  const DType dtype = call.inputs[0].type.dtype;
  if (call.inputs[1].type.dtype != dtype) return Invalid("input and weights have different types");
  if (ir::IsBool(dtype)) return Invalid("bool cannot be convolved");
  HONE_ASSIGN_OR_RETURN(const DType result, ProductType(call, dtype));
  const TensorType bias{result, {g.out_channels}};
  if (call.inputs.size() > 2 && call.inputs[2].present && call.inputs[2].type != bias) {
    return Invalid(
        fmt::format("the bias must be {}, not {}", ToText(bias), ToText(call.inputs[2].type)));
  }
  return Types{{result, std::move(g.output)}};
}

/// The contraction over taps and input channels: reduce axes [ic, k…] for nchw, [k…, ic] for nhwc;
/// a group of one input channel has no channel axis.
int AddContraction(WorkloadBuilder& builder, const Geometry& g, int x, int w, DType accumulator) {
  const size_t spatial = g.axes.size();
  const bool depthwise = g.group > 1 && g.group_in == 1;
  const bool channels_last = g.layout.channel != 1;
  const int first = static_cast<int>(g.output.size());
  Shape reduce;
  for (const WindowAxis& axis : g.axes) reduce.push_back(axis.kernel);
  int tap = first;
  Expr channel = ir::Int(0);
  if (!depthwise) {
    channel = ir::Var(channels_last ? first + static_cast<int>(spatial) : first);
    reduce.insert(channels_last ? reduce.end() : reduce.begin(), g.group_in);
    tap += channels_last ? 0 : 1;
  }
  const Expr out_channel = ir::Var(static_cast<int>(g.layout.channel));
  const Expr group = ir::FloorDiv(out_channel, g.out_channels / g.group);
  Exprs at_x = Axes(g.output.size());
  Exprs at_w = {out_channel, channel};
  at_x[g.layout.channel] = g.group == 1 ? channel : group * g.group_in + channel;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t d = g.layout.first_spatial + i;
    const Expr k = ir::Var(tap + static_cast<int>(i));
    at_x[d] = WindowIndex(g.axes[i], at_x[d], k);
    at_w.push_back(k);
  }
  return builder.AddReduce(g.output, std::move(reduce), ir::Combiner::kSum,
                           ir::Cast(accumulator, builder.At(x, std::move(at_x))) *
                               ir::Cast(accumulator, builder.At(w, std::move(at_w))));
}

absl::StatusOr<Tensors> ExpressConv(const OpCall& call, WorkloadBuilder& builder,
                                    const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(call));
  const DType dtype = call.inputs[0].type.dtype;
  const DType accumulator = AccumulatorType(dtype);
  HONE_ASSIGN_OR_RETURN(const DType result, ProductType(call, dtype));
  const int x = AddPadStage(builder, tensors[0], g.layout, g.axes, ir::Const(dtype, 0));
  int y = AddContraction(builder, g, x, tensors[1], accumulator);
  const Exprs point = Axes(g.output.size());
  if (accumulator != result) y = builder.AddMap(g.output, ir::Cast(result, builder.At(y, point)));
  if (call.inputs.size() > 2 && call.inputs[2].present) {
    y = builder.AddMap(g.output, builder.At(y, point) +
                                     ReadAt(call, builder, tensors, 2, {point[g.layout.channel]}));
  }
  return Tensors{y};
}

// ConvInteger: inputs x, w, zero point of x?, of w? (one, or one per output channel).

absl::StatusOr<Types> InferConvInteger(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(Geometry g, GeometryOf(call));
  for (size_t i = 0; i < 2; ++i) {
    const DType dtype = call.inputs[i].type.dtype;
    if (dtype != DType::kI8 && dtype != DType::kU8)
      return Invalid(fmt::format("it takes i8 and u8, not {}", ToString(dtype)));
    if (call.inputs.size() <= 2 + i || !call.inputs[2 + i].present) continue;
    const TensorType& zero = call.inputs[2 + i].type;
    const bool per_channel = i == 1 && zero.shape == Shape{g.out_channels};
    if (zero.dtype != dtype || (zero.NumElements() != 1 && !per_channel))
      return Invalid(fmt::format("the zero point must be {} and one number{}, not {}",
                                 ToString(dtype), i == 1 ? " or one for each output channel" : "",
                                 ToText(zero)));
  }
  return Types{{DType::kI32, std::move(g.output)}};
}

/// Σ (x - zx)(w - zw) = Σ x·w - zw Σ x - zx Σ w + n·zx·zw, so that the contraction runs on raw
/// bytes. The padding is zx, which counts as nothing.
absl::StatusOr<Tensors> ExpressConvInteger(const OpCall& call, WorkloadBuilder& builder,
                                           const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(call));
  const auto zero_point = [&](size_t i, const Expr& channel) -> Expr {
    if (call.inputs.size() <= i || !call.inputs[i].present) return nullptr;
    const Shape& shape = call.inputs[i].type.shape;
    return ReadAt(call, builder, tensors, i,
                  Exprs(shape.size(), shape.empty() || shape[0] == 1 ? ir::Int(0) : channel));
  };
  const auto wide = [](const Expr& e) { return ir::Cast(DType::kI32, e); };
  const Expr pad = zero_point(2, nullptr);
  const int x = AddPadStage(builder, tensors[0], g.layout, g.axes,
                            pad == nullptr ? ir::Const(call.inputs[0].type.dtype, 0) : pad);
  const int raw = AddContraction(builder, g, x, tensors[1], DType::kI32);
  const Exprs point = Axes(g.output.size());
  const Expr channel = point[g.layout.channel];
  const Expr zx = pad;
  const Expr zw = zero_point(3, channel);
  if (zx == nullptr && zw == nullptr) return Tensors{raw};
  Expr result = builder.At(raw, point);
  int64_t taps = g.group_in;
  Shape window = {g.group_in};
  for (const WindowAxis& axis : g.axes) {
    taps *= axis.kernel;
    window.push_back(axis.kernel);
  }
  if (zw != nullptr) {
    Shape sums = g.output;
    sums[g.layout.channel] = g.group;
    Exprs at = Axes(sums.size());
    const int first = static_cast<int>(sums.size());
    at[g.layout.channel] = at[g.layout.channel] * g.group_in + ir::Var(first);
    for (size_t i = 0; i < g.axes.size(); ++i) {
      Expr& index = at[g.layout.first_spatial + i];
      index = WindowIndex(g.axes[i], index, ir::Var(first + 1 + static_cast<int>(i)));
    }
    const int sum = builder.AddReduce(sums, window, ir::Combiner::kSum, wide(builder.At(x, at)));
    Exprs row = point;
    row[g.layout.channel] = ir::FloorDiv(channel, g.out_channels / g.group);
    result = result - wide(zw) * builder.At(sum, row);
  }
  if (zx != nullptr) {
    Exprs at = Axes(window.size() + 1);
    const int sum = builder.AddReduce({g.out_channels}, window, ir::Combiner::kSum,
                                      wide(builder.At(tensors[1], at)));
    result = result - wide(zx) * builder.At(sum, {channel});
    if (zw != nullptr) result = result + wide(zx) * wide(zw) * ir::ConstInt(DType::kI32, taps);
  }
  return Tensors{builder.AddMap(g.output, result)};
}

constexpr OpDefinition kOps[] = {
    {"Conv", InferConv, ExpressConv},
    {"ConvInteger", InferConvInteger, ExpressConvInteger},
};

}  // namespace

std::span<const OpDefinition> ConvOps() { return kOps; }

}  // namespace hone::graph::ops
