#include <algorithm>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"

// GridSample and RoiAlign: reading between pixels at computed places.
namespace hone::graph::ops {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::UnaryOp;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

Expr Floor(const Expr& x) { return ir::Unary(UnaryOp::kFloor, x); }
Expr Limited(const Expr& i, int64_t extent) {
  return ir::Max(ir::Min(i, ir::Int(extent - 1)), ir::Int(0));
}

absl::StatusOr<Types> InferGridSample(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 2));
  const TensorType& x = call.inputs[0].type;
  const TensorType& grid = call.inputs[1].type;
  const size_t rank = x.shape.size();
  if (rank < 3 || grid.shape.size() != rank || grid.shape[0] != x.shape[0] ||
      grid.shape[rank - 1] != static_cast<int64_t>(rank) - 2) {
    return Invalid(fmt::format("the grid {} does not fit the input {}", ToText(grid), ToText(x)));
  }
  const std::string mode = call.String("mode", "linear");
  const std::string padding = call.String("padding", "zeros");
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return Invalid(fmt::format("unknown mode '{}'", mode));
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return Invalid(fmt::format("unknown padding '{}'", padding));
  if (!ir::IsFloat(grid.dtype) || !ir::IsFloat(x.dtype))
    return Invalid("input and grid must be floats");
  TensorType result{x.dtype, {x.shape[0], x.shape[1]}};
  result.shape.insert(result.shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  return Types{std::move(result)};
}

/// How places outside an axis are read.
struct Border {
  std::string padding;
  bool align_corners = false;

  /// `x` mirrored into [low, high] of the axis.
  Expr Reflect(const Expr& x, int64_t extent) const {
    const double low = align_corners ? 0 : -0.5;
    const double span = static_cast<double>(align_corners ? extent - 1 : extent);
    const auto constant = [&](double v) { return ir::Const(x->dtype, v); };
    if (span == 0) return constant(low);
    const Expr folded = ir::Binary(BinaryOp::kMod, x - constant(low), constant(2 * span));
    return ir::Min(folded, constant(2 * span) - folded) + constant(low);
  }
  /// A place drawn inside, for the paddings that do so before interpolating. The cubic kernel is
  /// wider than a pixel: it draws its pixels inside instead, as PyTorch does.
  Expr Place(const Expr& x, int64_t extent, bool cubic) const {
    if (padding == "border" && !cubic) {
      return ir::Min(ir::Max(x, ir::Const(x->dtype, 0)),
                     ir::Const(x->dtype, static_cast<double>(extent - 1)));
    }
    return padding == "reflection" ? Reflect(x, extent) : x;
  }
  /// The pixel that stands for number `i`.
  Expr Pixel(const Expr& i, int64_t extent) const {
    if (padding != "reflection" || extent == 1) return Limited(i, extent);
    const int64_t period = align_corners ? 2 * (extent - 1) : 2 * extent;
    const Expr folded = ir::FloorMod(i, period);
    return Limited(ir::Min(folded, ir::Int(align_corners ? period : period - 1) - folded), extent);
  }
};

/// Coefficients of Keys' cubic kernel (a = -0.75) for a fraction in [0, 1).
Exprs CubicWeights(const Expr& fraction) {
  constexpr double kA = -0.75;
  const auto c = [&](double v) { return ir::Const(fraction->dtype, v); };
  const auto outer = [&](const Expr& x) {
    return ((c(kA) * x - c(5 * kA)) * x + c(8 * kA)) * x - c(4 * kA);
  };
  const auto inner = [&](const Expr& x) { return (c(kA + 2) * x - c(kA + 3)) * x * x + c(1); };
  const Expr rest = c(1) - fraction;
  return {outer(fraction + c(1)), inner(fraction), inner(rest), outer(rest + c(1))};
}

absl::StatusOr<Tensors> ExpressGridSample(const OpCall& call, WorkloadBuilder& builder,
                                          const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferGridSample(call));
  const TensorType& x = call.inputs[0].type;
  const Shape& grid = call.inputs[1].type.shape;
  const std::string mode = call.String("mode", "linear");
  const Border border{call.String("padding", "zeros"), call.Int("align_corners", 0) != 0};
  const size_t count = x.shape.size() - 2;
  const DType type = AccumulatorType(call.inputs[1].type.dtype);
  // Places in pixels, one Stage per axis (the grid counts axes from the last): n, out…
  const Shape places(grid.begin(), grid.end() - 1);
  std::vector<int> place;
  for (size_t d = 0; d < count; ++d) {
    Exprs at = Axes(places.size());
    at.push_back(ir::Int(static_cast<int64_t>(count - 1 - d)));
    const double length = static_cast<double>(x.shape[2 + d]);
    const auto constant = [&](double v) { return ir::Const(type, v); };
    const Expr shifted =
        ir::Cast(type, ReadAt(call, builder, tensors, 1, std::move(at))) + constant(1);
    Expr pixel = border.align_corners ? shifted * constant((length - 1) / 2)
                                      : (shifted * constant(length) - constant(1)) * constant(0.5);
    if (mode == "nearest") pixel = ir::Unary(UnaryOp::kRound, pixel);
    place.push_back(builder.AddMap(places, border.Place(pixel, x.shape[2 + d], mode == "cubic")));
  }
  const Exprs point = Axes(types[0].shape.size());
  Exprs out(point.begin() + 2, point.end());
  out.insert(out.begin(), point[0]);
  const int64_t taps = mode == "nearest" ? 1 : mode == "linear" ? 2 : 4;
  std::vector<Exprs> weights(count);
  std::vector<Expr> first(count);
  for (size_t d = 0; d < count; ++d) {
    const Expr at = builder.At(place[d], out);
    const Expr fraction = at - Floor(at);
    first[d] = ir::Cast(DType::kI64, Floor(at)) - (taps == 4 ? 1 : 0);
    weights[d] = taps == 1   ? Exprs{ir::Const(type, 1)}
                 : taps == 2 ? Exprs{ir::Const(type, 1) - fraction, fraction}
                             : CubicWeights(fraction);
  }
  int64_t total = 1;
  for (size_t d = 0; d < count; ++d) total *= taps;
  Expr sum;
  for (int64_t tap = 0; tap < total; ++tap) {
    Exprs at = {point[0], point[1]};
    Expr weight;
    Expr inside;
    int64_t rest = tap;
    for (size_t d = 0; d < count; ++d, rest /= taps) {
      const int64_t own = rest % taps;
      const Expr index = first[d] + own;
      at.push_back(border.Pixel(index, x.shape[2 + d]));
      const Expr& w = weights[d][static_cast<size_t>(own)];
      weight = weight == nullptr ? w : weight * w;
      if (border.padding != "zeros") continue;
      const Expr in_range = ir::InRange(index, x.shape[2 + d]);
      inside = inside == nullptr ? in_range : ir::And(inside, in_range);
    }
    Expr pixel = ir::Cast(type, ReadAt(call, builder, tensors, 0, std::move(at)));
    if (inside != nullptr) pixel = ir::Select(inside, pixel, ir::Const(type, 0));
    if (taps > 1) pixel = pixel * weight;
    sum = sum == nullptr ? pixel : sum + pixel;
  }
  return Tensors{builder.AddMap(types[0].shape, ir::Cast(x.dtype, sum))};
}

absl::StatusOr<Types> InferRoiAlign(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 3));
  const TensorType& x = call.inputs[0].type;
  const TensorType& rois = call.inputs[1].type;
  const TensorType& batch = call.inputs[2].type;
  if (x.shape.size() != 4 || rois.shape.size() != 2 || rois.shape[1] != 4 ||
      batch.shape != Shape{rois.shape[0]} || !ir::IsInteger(batch.dtype) || rois.dtype != x.dtype ||
      !ir::IsFloat(x.dtype)) {
    return Invalid(fmt::format("rois {} and batch_indices {} do not fit the input {}", ToText(rois),
                               ToText(batch), ToText(x)));
  }
  const std::string mode = call.String("mode", "avg");
  constexpr int64_t kMax = int64_t{1} << 16;
  const int64_t height = call.Int("height", 1);
  const int64_t width = call.Int("width", 1);
  const int64_t samples = call.Int("samples", 1);
  if ((mode != "avg" && mode != "max") || height < 1 || width < 1 || samples < 1 || height > kMax ||
      width > kMax || samples > kMax) {
    return Invalid(fmt::format("mode '{}', output {} x {} or sampling_ratio {} is out of range",
                               mode, height, width, samples));
  }
  return Types{{x.dtype, {rois.shape[0], x.shape[1], height, width}}};
}

/// One axis of a sample: the two pixels around it, their weights, and whether it lies within the
/// image.
struct Between {
  Expr low, high, weight_low, weight_high, inside;
};

Between Around(const Expr& place, int64_t extent) {
  const DType type = place->dtype;
  const auto constant = [&](double v) { return ir::Const(type, v); };
  const Expr at = ir::Min(ir::Max(place, constant(0)), constant(static_cast<double>(extent - 1)));
  const Expr floor = Floor(at);
  const Expr low = ir::Cast(DType::kI64, floor);
  return {Limited(low, extent), Limited(low + 1, extent), constant(1) - (at - floor), at - floor,
          ir::And(ir::Ge(place, constant(-1)),
                  ir::Binary(BinaryOp::kLe, place, constant(static_cast<double>(extent))))};
}

absl::StatusOr<Tensors> ExpressRoiAlign(const OpCall& call, WorkloadBuilder& builder,
                                        const Tensors& tensors) {
  HONE_ASSIGN_OR_RETURN(const Types types, InferRoiAlign(call));
  const TensorType& x = call.inputs[0].type;
  const DType type = AccumulatorType(x.dtype);
  const bool max = call.String("mode", "avg") == "max";
  const bool half_pixel = call.Int("half_pixel", 1) != 0;
  const int64_t samples = call.Int("samples", 1);
  const Expr r = ir::Var(0), c = ir::Var(1);
  const auto constant = [&](double v) { return ir::Const(type, v); };
  const auto corner = [&](int64_t k) {
    return ir::Cast(type, ReadAt(call, builder, tensors, 1, {r, ir::Int(k)})) *
               constant(call.Float("scale", 1)) -
           constant(half_pixel ? 0.5 : 0);
  };
  // start + (bin + (sample + 0.5) / samples) * size / bins
  const auto place = [&](int64_t first, const Expr& bin, int64_t bins, const Expr& sample) {
    const Expr start = corner(first);
    Expr size = corner(first + 2) - start;
    if (!half_pixel) size = ir::Max(size, constant(1));
    const Expr within =
        (ir::Cast(type, sample) + constant(0.5)) * constant(1.0 / static_cast<double>(samples));
    return start +
           (ir::Cast(type, bin) + within) * size * constant(1.0 / static_cast<double>(bins));
  };
  const Between v = Around(place(1, ir::Var(2), types[0].shape[2], ir::Var(4)), x.shape[2]);
  const Between h = Around(place(0, ir::Var(3), types[0].shape[3], ir::Var(5)), x.shape[3]);
  const Expr image =
      Limited(ir::Cast(DType::kI64, ReadAt(call, builder, tensors, 2, {r})), x.shape[0]);
  const auto pixel = [&](const Expr& i, const Expr& j, const Expr& weight) {
    return ir::Cast(type, builder.At(tensors[0], {image, c, i, j})) * weight;
  };
  const Expr corners[] = {pixel(v.low, h.low, v.weight_low * h.weight_low),
                          pixel(v.low, h.high, v.weight_low * h.weight_high),
                          pixel(v.high, h.low, v.weight_high * h.weight_low),
                          pixel(v.high, h.high, v.weight_high * h.weight_high)};
  const Expr value = max ? ir::Max(ir::Max(corners[0], corners[1]), ir::Max(corners[2], corners[3]))
                         : corners[0] + corners[1] + corners[2] + corners[3];
  const Expr body = ir::Select(ir::And(v.inside, h.inside), value, constant(0));
  const int sum = builder.AddReduce(types[0].shape, {samples, samples},
                                    max ? ir::Combiner::kMax : ir::Combiner::kSum, body);
  Expr result = builder.At(sum, Axes(4));
  if (!max)
    result = ir::Binary(BinaryOp::kDiv, result, constant(static_cast<double>(samples * samples)));
  return Tensors{builder.AddMap(types[0].shape, ir::Cast(x.dtype, result))};
}

constexpr OpDefinition kOps[] = {
    {"GridSample", InferGridSample, ExpressGridSample},
    {"RoiAlign", InferRoiAlign, ExpressRoiAlign},
};

}  // namespace

std::span<const OpDefinition> SamplingOps() { return kOps; }

}  // namespace hone::graph::ops
