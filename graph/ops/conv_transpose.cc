#include <algorithm>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"
#include "graph/ops/window.h"

// ConvTranspose as a convolution with stride_h·stride_w·oc channels (one phase for each position of
// an output pixel inside its stride) and a depth-to-space map. Phase s of an axis sees every
// stride-th tap, from (s + pad) mod stride on:
//   phases[n, oc, q, s] = Σ ic, j  x[n, ic, q + (s + pad) / stride - j]
//                                  · w[ic, oc, (s + pad) mod stride + stride·j]
//   y[n, oc, o]         = phases[n, oc, o / stride, o mod stride]
// With dilation d > 1 the weights are spread first: tap t of the spread kernel is w[t / d] where d
// divides t.
namespace hone::graph::ops {
namespace {

using ir::DType;
using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

struct TransposedAxis {
  int64_t input = 0;
  int64_t stride = 1;
  int64_t pad_begin = 0;
  int64_t output = 0;
  int64_t kernel = 1;  ///< spread by the dilation
  int64_t dilation = 1;
  int64_t taps = 1;       ///< of one phase
  int64_t positions = 1;  ///< values of q

  /// Where the last phase begins to read, after the first: 0 or 1.
  int64_t later() const { return (pad_begin % stride + stride - 1) / stride; }
};

struct Geometry {
  DataLayout layout;
  std::vector<TransposedAxis> axes;
  int64_t group = 1;
  int64_t in_channels = 0;
  int64_t group_out = 0;  ///< output channels of one group
  Shape output;

  /// Whether the contraction has an axis of groups: of a group's channels the weights then read one
  /// axis each, as schedules that pack them ask for. Depthwise, channels are vectors better.
  bool group_axis() const {
    return group > 1 && group_out > 1 && output.size() + axes.size() < size_t{ir::kMaxRank};
  }
};

absl::Status SetAxis(TransposedAxis& axis, int64_t pad_end, int64_t output_padding) {
  constexpr int64_t kMax = int64_t{1} << 31;
  if (axis.stride < 1 || axis.dilation < 1 || axis.kernel < 1 || output_padding < 0 ||
      axis.stride > kMax || axis.dilation > kMax || axis.input > kMax || axis.kernel > kMax ||
      output_padding > kMax) {
    return Invalid(fmt::format("stride {}, dilation {} or output_padding {} is out of range",
                               axis.stride, axis.dilation, output_padding));
  }
  const __int128 span = static_cast<__int128>(axis.kernel - 1) * axis.dilation + 1;
  const __int128 output = static_cast<__int128>(axis.stride) * (axis.input - 1) + span +
                          output_padding - axis.pad_begin - pad_end;
  if (output < 1 || output > (static_cast<__int128>(1) << 40) || span > kMax)
    return Invalid("an output extent is below one or overflows");
  axis.kernel = static_cast<int64_t>(span);
  axis.output = static_cast<int64_t>(output);
  axis.taps = (axis.kernel + axis.stride - 1) / axis.stride;
  axis.positions = (axis.output + axis.stride - 1) / axis.stride;
  return absl::OkStatus();
}

absl::StatusOr<Geometry> GeometryOf(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 2));
  const Shape& x = call.inputs[0].type.shape;
  const Shape& w = call.inputs[1].type.shape;
  Geometry g;
  HONE_ASSIGN_OR_RETURN(g.layout, DataLayout::Of(call));
  if (w.size() != x.size())
    return Invalid(
        fmt::format("the weights have rank {}, but the input has rank {}", w.size(), x.size()));
  g.in_channels = x[g.layout.channel];
  g.group = call.Int("group", 1);
  g.group_out = w[1];
  if (g.group < 1 || w[0] != g.in_channels || g.in_channels % g.group != 0) {
    return Invalid(
        fmt::format("the weights have {} input channels in {} groups, but the input has {}", w[0],
                    g.group, g.in_channels));
  }
  const size_t count = x.size() - 2;
  const Shape strides = call.Ints("strides", Shape(count, 1));
  const Shape dilations = call.Ints("dilations", Shape(count, 1));
  const Shape pads = call.Ints("pads", Shape(2 * count, 0));
  const Shape output_padding = call.Ints("output_padding", Shape(count, 0));
  if (strides.size() != count || dilations.size() != count || pads.size() != 2 * count ||
      output_padding.size() != count) {
    return Invalid(fmt::format(
        "strides, dilations, pads or output_padding do not fit {} spatial axes", count));
  }
  g.output = x;
  if (__builtin_mul_overflow(g.group, g.group_out, &g.output[g.layout.channel]))
    return Invalid("too many channels");
  for (size_t i = 0; i < count; ++i) {
    TransposedAxis axis{.input = x[g.layout.first_spatial + i],
                        .stride = strides[i],
                        .pad_begin = pads[i],
                        .kernel = w[2 + i],
                        .dilation = dilations[i]};
    HONE_RETURN_IF_ERROR(SetAxis(axis, pads[count + i], output_padding[i]));
    if (axis.pad_begin < 0) return Invalid("negative padding");
    g.axes.push_back(axis);
    g.output[g.layout.first_spatial + i] = axis.output;
  }
  return g;
}

absl::StatusOr<Types> InferConvTranspose(const OpCall& call) {
  HONE_ASSIGN_OR_RETURN(Geometry g, GeometryOf(call));
  const DType dtype = call.inputs[0].type.dtype;
  if (call.inputs[1].type.dtype != dtype || ir::IsBool(dtype))
    return Invalid("input and weights must have one numeric type");
  const TensorType bias{dtype, {g.output[g.layout.channel]}};
  if (call.inputs.size() > 2 && call.inputs[2].present && call.inputs[2].type != bias) {
    return Invalid(
        fmt::format("the bias must be {}, not {}", ToText(bias), ToText(call.inputs[2].type)));
  }
  return Types{{dtype, std::move(g.output)}};
}

/// x with zeros around it, or without what no phase reads: what the last tap of the first phase
/// reads for q = 0 is at 0.
int PadInput(WorkloadBuilder& builder, const Geometry& g, int x) {
  Shape shape = builder.tensor(x).shape;
  Exprs at = Axes(shape.size());
  Expr inside;
  for (size_t i = 0; i < g.axes.size(); ++i) {
    const TransposedAxis& axis = g.axes[i];
    const size_t d = g.layout.first_spatial + i;
    const int64_t before = axis.taps - 1 - axis.pad_begin / axis.stride;
    shape[d] = axis.taps - 1 + axis.positions + axis.later();
    if (before == 0 && shape[d] <= axis.input) continue;
    at[d] = at[d] - before;
    const Expr in_range = ir::InRange(at[d], axis.input);
    inside = inside == nullptr ? in_range : ir::And(inside, in_range);
  }
  if (inside == nullptr) return x;
  const Expr zero = ir::Const(builder.tensor(x).dtype, 0);
  return builder.AddMap(shape, ir::Select(inside, builder.At(x, at), zero));
}

/// The weights spread by the dilations and filled with zeros to stride·taps, phase s at s, s +
/// stride, …
int PadWeights(WorkloadBuilder& builder, const Geometry& g, int w) {
  Shape shape = builder.tensor(w).shape;
  Exprs at = Axes(shape.size());
  Expr inside;
  const auto require = [&](const Expr& condition) {
    inside = inside == nullptr ? condition : ir::And(inside, condition);
  };
  for (size_t i = 0; i < g.axes.size(); ++i) {
    const TransposedAxis& axis = g.axes[i];
    shape[2 + i] = axis.taps * axis.stride;
    if (axis.later() > 0) {
      at[2 + i] = ir::FloorDiv(at[2 + i], axis.stride) * axis.stride +
                  ir::FloorMod(at[2 + i] + axis.pad_begin % axis.stride, axis.stride);
    }
    const Expr tap = at[2 + i];
    if (axis.dilation > 1) {
      require(ir::Binary(ir::BinaryOp::kEq, ir::FloorMod(tap, axis.dilation), ir::Int(0)));
      at[2 + i] = ir::FloorDiv(tap, axis.dilation);
    }
    if (shape[2 + i] != axis.kernel) require(ir::Lt(tap, ir::Int(axis.kernel)));
  }
  const auto moved = [](const TransposedAxis& axis) { return axis.later() > 0; };
  if (inside == nullptr && std::ranges::none_of(g.axes, moved)) return w;
  if (inside == nullptr) return builder.AddMap(shape, builder.At(w, at));
  const Expr zero = ir::Const(builder.tensor(w).dtype, 0);
  return builder.AddMap(shape, ir::Select(inside, builder.At(w, at), zero));
}

/// The contraction: axes as the output's with each spatial axis replaced by its positions, then one
/// axis of `stride` phases for each; channels stay last where they are last, so that they are
/// contiguous. With an axis of groups that is the second, and channels are those of a group.
int AddPhases(WorkloadBuilder& builder, const Geometry& g, int x, int w, DType accumulator) {
  const size_t rank = g.output.size();
  const size_t count = g.axes.size();
  Shape spatial = g.output;
  for (size_t i = 0; i < count; ++i) spatial[g.layout.first_spatial + i] = g.axes[i].positions;
  const bool channels_last = g.layout.channel != 1;
  const size_t shift = g.group_axis() ? 1 : 0;
  if (g.group_axis()) {
    spatial[g.layout.channel] = g.group_out;
    spatial.insert(spatial.begin() + 1, g.group);
  }
  const auto phases = static_cast<std::ptrdiff_t>((channels_last ? rank - 1 : rank) + shift);
  for (size_t i = count; i-- > 0;) spatial.insert(spatial.begin() + phases, g.axes[i].stride);
  const int64_t group_in = g.in_channels / g.group;
  Shape reduce;
  for (const TransposedAxis& axis : g.axes) reduce.push_back(axis.taps);
  reduce.insert(channels_last ? reduce.end() : reduce.begin(), group_in);
  const int first = static_cast<int>(spatial.size());
  const int tap = channels_last ? first : first + 1;
  const Expr out_channel =
      ir::Var(static_cast<int>(shift + (channels_last ? rank - 1 + count : 1)));
  const Expr own = ir::Var(channels_last ? first + static_cast<int>(count) : first);
  const Expr group = g.group_axis() ? ir::Var(1) : ir::FloorDiv(out_channel, g.group_out);
  const Expr in_channel = g.group == 1 ? own : group * group_in + own;
  Exprs at_x = Axes(rank + shift);
  if (g.group_axis()) at_x.erase(at_x.begin() + 1);
  at_x[g.layout.channel] = in_channel;
  const bool merged = g.group > 1 && !g.group_axis();
  Exprs at_w = {in_channel, merged ? ir::FloorMod(out_channel, g.group_out) : out_channel};
  for (size_t i = 0; i < count; ++i) {
    const TransposedAxis& axis = g.axes[i];
    const Expr j = ir::Var(tap + static_cast<int>(i));
    const size_t d = g.layout.first_spatial + i;
    const Expr phase = ir::Var(static_cast<int>(phases) + static_cast<int>(i));
    if (axis.later() > 0)
      at_x[d] = at_x[d] + ir::FloorDiv(phase + axis.pad_begin % axis.stride, axis.stride);
    if (axis.taps > 1) at_x[d] = at_x[d] + ir::Int(axis.taps - 1) - j;
    at_w.push_back(j * axis.stride + phase);
  }
  return builder.AddReduce(
      spatial, reduce, ir::Combiner::kSum,
      ir::Cast(accumulator, builder.At(x, at_x)) * ir::Cast(accumulator, builder.At(w, at_w)));
}

absl::StatusOr<Tensors> ExpressConvTranspose(const OpCall& call, WorkloadBuilder& builder,
                                             const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Geometry g, GeometryOf(call));
  const DType dtype = call.inputs[0].type.dtype;
  const int x = PadInput(builder, g, tensors[0]);
  const int w = PadWeights(builder, g, tensors[1]);
  const int phases = AddPhases(builder, g, x, w, AccumulatorType(dtype));
  const Exprs point = Axes(g.output.size());
  Exprs at = point, inside;
  for (size_t i = 0; i < g.axes.size(); ++i) {
    const TransposedAxis& axis = g.axes[i];
    const size_t d = g.layout.first_spatial + i;
    at[d] = ir::FloorDiv(point[d], axis.stride);
    inside.push_back(ir::FloorMod(point[d], axis.stride));
  }
  if (g.group_axis()) {
    at[g.layout.channel] = ir::FloorMod(point[g.layout.channel], g.group_out);
    at.insert(at.begin() + 1, ir::FloorDiv(point[g.layout.channel], g.group_out));
  }
  at.insert(g.layout.channel == 1 ? at.end() : at.end() - 1, inside.begin(), inside.end());
  int y = builder.AddMap(g.output, ir::Cast(dtype, builder.At(phases, at)));
  if (call.inputs.size() > 2 && call.inputs[2].present) {
    y = builder.AddMap(g.output, builder.At(y, point) +
                                     ReadAt(call, builder, tensors, 2, {point[g.layout.channel]}));
  }
  return Tensors{y};
}

constexpr OpDefinition kOps[] = {{"ConvTranspose", InferConvTranspose, ExpressConvTranspose}};

}  // namespace

std::span<const OpDefinition> ConvTransposeOps() { return kOps; }

}  // namespace hone::graph::ops
