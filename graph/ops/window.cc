#include "graph/ops/window.h"

#include <algorithm>

#include "fmt/format.h"

#include "base/status.h"

namespace hone::graph::ops {

using ir::Expr;

absl::StatusOr<DataLayout> DataLayout::Of(const OpCall& call) {
  const size_t rank = call.inputs[0].type.shape.size();
  if (rank < 3 || rank > 5) {
    return Invalid(
        fmt::format("the input must have rank 3 to 5 (1 to 3 spatial axes), not {}", rank));
  }
  const std::string layout = call.String("layout", "nchw");
  if (layout == "nchw") return DataLayout{1, 2};
  if (layout == "nhwc") return DataLayout{rank - 1, 1};
  return Invalid(fmt::format("unknown layout '{}'", layout));
}

namespace {

absl::StatusOr<Shape> PerAxis(const OpCall& call, std::string_view name, size_t count,
                              int64_t otherwise) {
  Shape values = call.Ints(name);
  if (values.empty()) values.assign(count, otherwise);
  if (values.size() != count)
    return Invalid(fmt::format("{} has {} values, not {}", name, values.size(), count));
  return values;
}

absl::Status SetOutput(WindowAxis& axis, Rounding rounding) {
  if (axis.kernel < 1 || axis.stride < 1 || axis.dilation < 1) {
    return Invalid(fmt::format("kernel {}, stride {} and dilation {} must be at least 1",
                               axis.kernel, axis.stride, axis.dilation));
  }
  // More would be work on nothing but padding, and tables and loops as long as it.
  constexpr int64_t kMostPadding = int64_t{1} << 20;
  if (axis.pad_begin > kMostPadding || axis.pad_end > kMostPadding) {
    return Invalid(
        fmt::format("pads {} and {} around extent {} are too large; at most {} are supported",
                    axis.pad_begin, axis.pad_end, axis.input, kMostPadding));
  }
  using Wide = __int128;
  const Wide padded = Wide{axis.input} + axis.pad_begin + axis.pad_end;
  const Wide span = Wide{axis.kernel - 1} * axis.dilation + 1;
  const Wide room = padded - span;
  if (room < 0 && rounding == Rounding::kFloor) {
    return Invalid(fmt::format(
        "a kernel of size {} with dilation {} does not fit the input extent {} with pads {} and {}",
        axis.kernel, axis.dilation, axis.input, axis.pad_begin, axis.pad_end));
  }
  const Wide rest = rounding == Rounding::kCeil ? axis.stride - 1 : 0;
  Wide output = (room + rest) / axis.stride + 1;  // toward zero: a room of -1 is one window too
  // A window that would start behind the input and its first padding is dropped.
  if (rounding == Rounding::kCeil &&
      (output - 1) * axis.stride >= Wide{axis.input} + axis.pad_begin)
    --output;
  if (output < 1 || output > (Wide{1} << 40) || padded > (Wide{1} << 40))
    return Invalid("the size of its result overflows");
  axis.output = static_cast<int64_t>(output);
  axis.taps = axis.kernel;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<WindowAxis>> WindowAxes(const OpCall& call, const DataLayout& layout,
                                                   const Shape& kernel, Rounding rounding) {
  const Shape& x = call.inputs[0].type.shape;
  const size_t count = x.size() - 2;
  if (kernel.size() != count)
    return Invalid(fmt::format("kernel_shape has {} values, but the input has {} spatial axes",
                               kernel.size(), count));
  HONE_ASSIGN_OR_RETURN(const Shape strides, PerAxis(call, "strides", count, 1));
  HONE_ASSIGN_OR_RETURN(const Shape dilations, PerAxis(call, "dilations", count, 1));
  HONE_ASSIGN_OR_RETURN(const Shape pads, PerAxis(call, "pads", 2 * count, 0));
  std::vector<WindowAxis> axes;
  for (size_t i = 0; i < count; ++i) {
    WindowAxis axis{.input = x[layout.first_spatial + i],
                    .kernel = kernel[i],
                    .stride = strides[i],
                    .dilation = dilations[i],
                    .pad_begin = pads[i],
                    .pad_end = pads[count + i]};
    HONE_RETURN_IF_ERROR(SetOutput(axis, rounding));
    axes.push_back(axis);
  }
  return axes;
}

int AddPadStage(ir::WorkloadBuilder& builder, int x, const DataLayout& layout,
                const std::vector<WindowAxis>& axes, const Expr& fill) {
  Shape shape = builder.tensor(x).shape;
  Exprs indices = Axes(shape.size());
  Expr inside;
  bool moved = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    const WindowAxis& axis = axes[i];
    const int64_t covered = (axis.output - 1) * axis.stride + (axis.taps - 1) * axis.dilation + 1;
    const int64_t pad_end = covered - axis.input - axis.pad_begin;  // what windows reach
    if (axis.pad_begin == 0 && pad_end <= 0) continue;
    moved = true;
    const size_t d = layout.first_spatial + i;
    shape[d] += axis.pad_begin + pad_end;
    indices[d] = indices[d] - axis.pad_begin;
    if (axis.pad_begin <= 0 && pad_end <= 0) continue;
    const Expr in_range = ir::InRange(indices[d], axis.input);
    inside = inside == nullptr ? in_range : ir::And(inside, in_range);
  }
  if (!moved) return x;
  Expr body = builder.At(x, std::move(indices));
  if (inside != nullptr) body = ir::Select(inside, std::move(body), fill);
  return builder.AddMap(std::move(shape), std::move(body));
}

Expr WindowIndex(const WindowAxis& axis, const Expr& out, const Expr& tap) {
  return out * axis.stride + tap * axis.dilation;
}

}  // namespace hone::graph::ops
