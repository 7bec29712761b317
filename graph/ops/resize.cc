#include <algorithm>
#include <cmath>
#include <iterator>

#include "fmt/format.h"

#include "base/status.h"
#include "graph/ops/definitions.h"
#include "graph/ops/operand.h"
#include "graph/ops/resize_table.h"
#include "ir/half.h"

// Resize: every axis has its own table of neighbours and weights, so it is one Stage an axis;
// nearest axes are index maps and share one.
namespace hone::graph::ops {
namespace {

using ir::DType;
using ir::Expr;
using ir::WorkloadBuilder;
using Tensors = std::vector<int>;

constexpr std::string_view kCoordinates[] = {
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
    "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
constexpr std::string_view kRoundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                           "ceil", "ceil_if_smaller"};

absl::Status CheckRule(const OpCall& call, const std::vector<double>& roi) {
  const std::string coordinate = call.String("coordinate", "half_pixel");
  const std::string nearest = call.String("nearest", "round_prefer_floor");
  if (std::find(std::begin(kCoordinates), std::end(kCoordinates), coordinate) ==
      std::end(kCoordinates))
    return Invalid(fmt::format("unknown coordinates '{}', not one of {}", coordinate,
                               fmt::join(kCoordinates, ", ")));
  if (std::find(std::begin(kRoundings), std::end(kRoundings), nearest) == std::end(kRoundings))
    return Invalid(
        fmt::format("unknown rounding '{}', not one of {}", nearest, fmt::join(kRoundings, ", ")));
  // Coordinates are f32: they must stay finite.
  constexpr double kFar = 1e9;
  for (double edge : roi) {
    if (!(std::abs(edge) <= kFar))
      return Invalid(fmt::format("roi value {} is out of range", edge));
  }
  return absl::OkStatus();
}

absl::StatusOr<Types> InferResize(const OpCall& call) {
  HONE_RETURN_IF_ERROR(RequireInputs(call, 1));
  const TensorType& x = call.inputs[0].type;
  const Shape sizes = call.Ints("sizes");
  const std::vector<double> scales = call.Floats("scales");
  const std::vector<double> roi = call.Floats("roi");
  const std::string mode = call.String("mode", "nearest");
  if (sizes.size() != x.shape.size() || scales.size() != sizes.size() ||
      (!roi.empty() && roi.size() != 2 * sizes.size())) {
    return Invalid(fmt::format("{} sizes and {} scales are given for an input of rank {}",
                               sizes.size(), scales.size(), x.shape.size()));
  }
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return Invalid(fmt::format("unknown mode '{}'", mode));
  HONE_RETURN_IF_ERROR(CheckRule(call, roi));
  if (ir::IsBool(x.dtype) && mode != "nearest") return Invalid("bool cannot be interpolated");
  constexpr int64_t kMaxExtent = int64_t{1} << 20;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1 || !(scales[i] > 0) || !std::isfinite(scales[i])) {
      return Invalid(fmt::format("axis {} cannot be resized to extent {} with scale {}", i,
                                 sizes[i], scales[i]));
    }
    if ((sizes[i] != x.shape[i] || scales[i] != 1) && std::max(sizes[i], x.shape[i]) > kMaxExtent) {
      return Invalid(fmt::format("axis {} of extent {} is too long to be resized", i, sizes[i]));
    }
    constexpr double kMaxTaps = 1 << 24;
    constexpr double kMaxTerms = 1 << 11;  // of one sum, an expression that is walked recursively
    const double taps = call.Int("antialias", 0) != 0 ? 4 / std::min(1.0, scales[i]) : 4;
    if (taps > kMaxTerms || taps * static_cast<double>(sizes[i]) > kMaxTaps) {
      return Invalid(fmt::format("axis {} at scale {} reads too many neighbours", i, scales[i]));
    }
  }
  return Types{{x.dtype, sizes}};
}

struct ResizedAxis {
  size_t axis;
  ResizeTable table;
};

std::vector<ResizedAxis> ResizedAxes(const OpCall& call) {
  const Shape& shape = call.inputs[0].type.shape;
  const Shape sizes = call.Ints("sizes");
  const std::vector<double> scales = call.Floats("scales");
  const std::vector<double> roi = call.Floats("roi");
  const ResizeRule rule{.mode = call.String("mode", "nearest"),
                        .coordinate = call.String("coordinate", "half_pixel"),
                        .nearest = call.String("nearest", "round_prefer_floor"),
                        .cubic_a = call.Float("cubic_a", -0.75),
                        .exclude_outside = call.Int("exclude_outside", 0) != 0,
                        .antialias = call.Int("antialias", 0) != 0};
  std::vector<ResizedAxis> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (sizes[i] == shape[i] && scales[i] == 1 && roi.empty()) continue;
    ResizeAxis axis{.input = shape[i], .output = sizes[i], .scale = scales[i]};
    if (!roi.empty()) {
      axis.roi_begin = roi[i];
      axis.roi_end = roi[i + shape.size()];
    }
    ResizeTable table = MakeResizeTable(axis, rule);
    if (sizes[i] != shape[i] || !table.IsIdentity()) axes.push_back({i, std::move(table)});
  }
  return axes;
}

/// values[o] as an expression: a formula where there is a plain one, else immediates (of limited
/// size, so several for a long axis).
Expr TableAt(WorkloadBuilder& builder, DType dtype, std::vector<double> values, const Expr& o) {
  if (ir::IsFloat(dtype)) {
    for (double& value : values) value = ir::RoundTo(dtype, value);
  }
  bool constant = true;
  for (double value : values) constant = constant && value == values[0];
  if (constant) return ir::Const(dtype, values[0]);
  const auto count = static_cast<int64_t>(values.size());
  Expr result;
  for (int64_t begin = (count - 1) / ir::kMaxImmediate * ir::kMaxImmediate; begin >= 0;
       begin -= ir::kMaxImmediate) {
    const int64_t end = std::min(begin + ir::kMaxImmediate, count);
    const int table =
        builder.AddImmediate(dtype, {end - begin}, {values.begin() + begin, values.begin() + end});
    const Expr part = builder.At(table, {o - begin});
    result = result == nullptr ? part : ir::Select(ir::Lt(o, ir::Int(end)), part, result);
  }
  return result;
}

/// The same for indices; o / s and s·o + c are recognised.
Expr IndexAt(WorkloadBuilder& builder, const std::vector<int64_t>& values, int64_t taps,
             int64_t tap, const Expr& o) {
  std::vector<int64_t> own;
  for (size_t i = static_cast<size_t>(tap); i < values.size(); i += static_cast<size_t>(taps))
    own.push_back(values[i]);
  const auto count = static_cast<int64_t>(own.size());
  const auto all = [&](auto formula) {
    for (int64_t i = 0; i < count; ++i) {
      if (own[static_cast<size_t>(i)] != formula(i)) return false;
    }
    return true;
  };
  const int64_t step = count > 1 ? own[1] - own[0] : 0;
  if (all([&](int64_t i) { return own[0] + step * i; })) return o * step + own[0];
  int64_t repeat = 1;
  while (repeat < count && own[static_cast<size_t>(repeat)] == own[0]) ++repeat;
  if (all([&](int64_t i) { return own[0] + i / repeat; })) return ir::FloorDiv(o, repeat) + own[0];
  return TableAt(builder, DType::kI64, {own.begin(), own.end()}, o);
}

Expr OutsideAt(WorkloadBuilder& builder, const ResizeTable& table, const Expr& o) {
  std::vector<double> inside;
  for (bool outside : table.outside) inside.push_back(outside ? 0 : 1);
  return ir::Binary(ir::BinaryOp::kEq, TableAt(builder, DType::kI64, inside, o), ir::Int(0));
}

int AddNearest(WorkloadBuilder& builder, const std::vector<ResizedAxis>& axes, int x,
               const Shape& sizes, double extrapolated) {
  const Exprs point = Axes(sizes.size());
  Exprs at = point;
  const Expr fill = ir::Const(builder.tensor(x).dtype, extrapolated);
  std::vector<Expr> outside;
  for (const ResizedAxis& resized : axes) {
    const Expr& o = point[resized.axis];
    at[resized.axis] = IndexAt(builder, resized.table.indices, 1, 0, o);
    if (resized.table.HasOutside()) outside.push_back(OutsideAt(builder, resized.table, o));
  }
  Expr body = builder.At(x, at);
  for (const Expr& condition : outside) body = ir::Select(condition, fill, body);
  return builder.AddMap(sizes, body);
}

int AddInterpolated(WorkloadBuilder& builder, const ResizedAxis& resized, int x, Shape shape,
                    const Expr& fill, DType type) {
  const ResizeTable& table = resized.table;
  shape[resized.axis] = static_cast<int64_t>(table.outside.size());
  Exprs at = Axes(shape.size());
  const Expr o = at[resized.axis];
  Expr sum;
  for (int64_t k = 0; k < table.taps; ++k) {
    std::vector<double> weights;
    for (size_t i = static_cast<size_t>(k); i < table.weights.size();
         i += static_cast<size_t>(table.taps))
      weights.push_back(table.weights[i]);
    at[resized.axis] = IndexAt(builder, table.indices, table.taps, k, o);
    Expr term = ir::Cast(type, builder.At(x, at)) * TableAt(builder, type, weights, o);
    sum = sum == nullptr ? std::move(term) : std::move(sum) + std::move(term);
  }
  if (table.HasOutside()) sum = ir::Select(OutsideAt(builder, table, o), fill, sum);
  return builder.AddMap(shape, sum);
}

absl::StatusOr<Tensors> ExpressResize(const OpCall& call, WorkloadBuilder& builder,
                                      const Tensors& tensors) {
  const TensorType& x = call.inputs[0].type;
  const Shape sizes = call.Ints("sizes");
  const std::vector<ResizedAxis> axes = ResizedAxes(call);
  const double extrapolated = call.Float("extrapolation", 0);
  if (call.String("mode", "nearest") == "nearest" || axes.empty()) {
    return Tensors{AddNearest(builder, axes, tensors[0], sizes, extrapolated)};
  }
  const DType type = ir::IsFloat(x.dtype) ? AccumulatorType(x.dtype) : DType::kF32;
  int y = tensors[0];
  for (const ResizedAxis& resized : axes) {
    y = AddInterpolated(builder, resized, y, builder.tensor(y).shape, ir::Const(type, extrapolated),
                        type);
  }
  if (type != x.dtype)
    y = builder.AddMap(sizes, ir::Cast(x.dtype, builder.At(y, Axes(sizes.size()))));
  return Tensors{y};
}

constexpr OpDefinition kOps[] = {{"Resize", InferResize, ExpressResize}};

}  // namespace

std::span<const OpDefinition> ResizeOps() { return kOps; }

}  // namespace hone::graph::ops
