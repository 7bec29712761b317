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
    return Invalid(
        fmt::format("the weights have rank {}, the input {}", w.shape.size(), x.shape.size()));
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
    return Invalid(fmt::format(
        "weights for {} input channels a group, but the input has {} channels in {} groups",
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
  if (call.inputs.size() > 2 && call.inputs[2].present &&
      call.inputs[2].type != TensorType{dtype, {g.out_channels}}) {
    return Invalid(fmt::format("the bias must be {}, not {}",
                               ToText(TensorType{dtype, {g.out_channels}}),
                               ToText(call.inputs[2].type)));
  }
  return Types{{dtype, std::move(g.output)}};
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
  const int x = AddPadStage(builder, tensors[0], g.layout, g.axes, ir::Const(dtype, 0));
  int y = AddContraction(builder, g, x, tensors[1], accumulator);
  const Exprs point = Axes(g.output.size());
  if (accumulator != dtype) y = builder.AddMap(g.output, ir::Cast(dtype, builder.At(y, point)));
  if (call.inputs.size() > 2 && call.inputs[2].present) {
    y = builder.AddMap(g.output, builder.At(y, point) +
                                     ReadAt(call, builder, tensors, 2, {point[g.layout.channel]}));
  }
  return Tensors{y};
}

constexpr OpDefinition kOps[] = {{"Conv", InferConv, ExpressConv}};

}  // namespace

std::span<const OpDefinition> ConvOps() { return kOps; }

}  // namespace hone::graph::ops
