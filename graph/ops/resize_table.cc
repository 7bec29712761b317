#include "graph/ops/resize_table.h"

#include <algorithm>
#include <cmath>

namespace hone::graph::ops {
namespace {

/// Where output position `x` lies on the input's axis. In f32 as in ONNX Runtime: `nearest` jumps
/// at whole and half coordinates, so their last bit decides.
float Coordinate(const ResizeAxis& axis, const ResizeRule& rule, float x) {
  const auto input = static_cast<float>(axis.input);
  const auto output = static_cast<float>(axis.output);
  const auto scale = static_cast<float>(axis.scale);
  const float width = scale * input;
  if (rule.coordinate == "align_corners")
    return width == 1 || output == 1 ? 0 : x * (input - 1) / (width - 1);
  if (rule.coordinate == "asymmetric") return x / scale;
  if (rule.coordinate == "tf_crop_and_resize") {
    const double span = (axis.roi_end - axis.roi_begin) * (input - 1);
    const double start = axis.roi_begin * (input - 1);
    return static_cast<float>(output == 1 ? start + span / 2 : start + x * span / (width - 1));
  }
  if (rule.coordinate == "pytorch_half_pixel" && output == 1) return 0;
  if (rule.coordinate == "half_pixel_symmetric") {
    return input / 2 * (1 - output / width) + (x + 0.5F) / scale - 0.5F;
  }
  if (rule.coordinate == "tf_half_pixel_for_nn") return (x + 0.5F) / scale;
  return (x + 0.5F) / scale - 0.5F;
}

double CubicKernel(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

/// First neighbour relative to the coordinate's floor, and the coefficients.
struct Taps {
  int64_t first = 0;
  std::vector<double> coefficients;
};

Taps TapsOf(const ResizeRule& rule, double ratio, double scale) {
  if (rule.mode == "nearest") {
    const bool up = rule.nearest == "ceil" || (rule.nearest == "ceil_if_smaller" && scale < 1) ||
                    (rule.nearest == "round_prefer_floor" && ratio > 0.5) ||
                    (rule.nearest == "round_prefer_ceil" && ratio >= 0.5) || ratio == 1;
    return {up ? 1 : 0, {1.0}};
  }
  const double shrink = rule.antialias ? std::min(scale, 1.0) : 1.0;
  const double support = rule.mode == "linear" ? 1 : 2;
  Taps taps;
  taps.first = static_cast<int64_t>(std::floor(-support / shrink)) + 1;
  const int64_t count = 2 - 2 * taps.first;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double distance = (static_cast<double>(taps.first + i) - ratio) * shrink;
    const double weight = rule.mode == "linear" ? std::clamp(1 - std::abs(distance), 0.0, 1.0)
                                                : CubicKernel(distance, rule.cubic_a);
    taps.coefficients.push_back(weight);
    sum += weight;
  }
  if (rule.antialias && sum != 0) {
    for (double& weight : taps.coefficients) weight /= sum;
  }
  return taps;
}

void ExcludeOutside(const ResizeAxis& axis, int64_t first, std::vector<double>& weights) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t index = first + static_cast<int64_t>(i);
    if (index < 0 || index >= axis.input) weights[i] = 0;
    sum += weights[i];
  }
  if (sum == 0) return;
  for (double& weight : weights) weight /= sum;
}

}  // namespace

bool ResizeTable::IsIdentity() const {
  if (HasOutside()) return false;
  const auto count = static_cast<int64_t>(outside.size());
  for (int64_t o = 0; o < count; ++o) {
    for (int64_t k = 0; k < taps; ++k) {
      const auto at = static_cast<size_t>(o * taps + k);
      if (weights[at] != 0 && (weights[at] != 1 || indices[at] != o)) return false;
    }
  }
  return true;
}

bool ResizeTable::HasOutside() const {
  return std::find(outside.begin(), outside.end(), true) != outside.end();
}

ResizeTable MakeResizeTable(const ResizeAxis& axis, const ResizeRule& rule) {
  ResizeTable table;
  const bool crops = rule.coordinate == "tf_crop_and_resize";
  for (int64_t o = 0; o < axis.output; ++o) {
    const double x = Coordinate(axis, rule, static_cast<float>(o));
    table.outside.push_back(crops && !(x >= 0 && x <= static_cast<double>(axis.input - 1)));
    double floor = std::floor(x);
    double ratio = x - floor;
    if (ratio == 0) {  // a whole coordinate counts as the upper end of its interval
      ratio = 1;
      floor -= 1;
    }
    Taps taps = TapsOf(rule, ratio, axis.scale);
    const double limit = 4.0 * static_cast<double>(axis.input + 4);
    const int64_t first = static_cast<int64_t>(std::clamp(floor, -limit, limit)) + taps.first;
    if (rule.exclude_outside) ExcludeOutside(axis, first, taps.coefficients);
    table.taps = static_cast<int64_t>(taps.coefficients.size());
    for (int64_t k = 0; k < table.taps; ++k) {
      table.indices.push_back(std::clamp<int64_t>(first + k, 0, axis.input - 1));
      table.weights.push_back(taps.coefficients[static_cast<size_t>(k)]);
    }
  }
  return table;
}

}  // namespace hone::graph::ops
