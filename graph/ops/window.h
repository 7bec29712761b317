#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "graph/op.h"
#include "graph/ops/operand.h"

// The geometry that convolutions and pooling share.
namespace hone::graph::ops {

/// One spatial axis of a window.
struct WindowAxis {
  int64_t input = 0;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  int64_t output = 0;
  int64_t taps =
      1;  ///< of the kernel, those that are visited: pooling skips what lies behind the input
};

/// Where batch, channels and spatial axes stand in a tensor of `rank` axes.
struct DataLayout {
  size_t channel = 1;
  size_t first_spatial = 2;
  static absl::StatusOr<DataLayout> Of(const OpCall& call);
};

enum class Rounding { kFloor, kCeil };

/// The axes from the attributes strides, dilations, pads (begin…, end…; missing: ones and zeros),
/// with their outputs. `kernel`: one extent per spatial axis. InvalidArgument for wrong counts,
/// strides or dilations below one, windows larger than the padded input.
absl::StatusOr<std::vector<WindowAxis>> WindowAxes(const OpCall& call, const DataLayout& layout,
                                                   const Shape& kernel, Rounding rounding);

/// A Stage that surrounds input `x` with `fill` as far as windows reach, so that they need no
/// guards; `x` itself where none reaches outside. Guards stand on padded axes only.
int AddPadStage(ir::WorkloadBuilder& builder, int x, const DataLayout& layout,
                const std::vector<WindowAxis>& axes, const ir::Expr& fill);

/// stride * out + dilation * tap.
ir::Expr WindowIndex(const WindowAxis& axis, const ir::Expr& out, const ir::Expr& tap);

}  // namespace hone::graph::ops
