#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone::graph::ops {

/// How one axis is resampled.
struct ResizeAxis {
  int64_t input = 1;
  int64_t output = 1;
  double scale = 1;  ///< output / input as the node states it
  double roi_begin = 0;
  double roi_end = 1;
};

struct ResizeRule {
  std::string mode;        ///< nearest, linear, cubic
  std::string coordinate;  ///< half_pixel, asymmetric, …
  std::string nearest;     ///< round_prefer_floor, …, ceil_if_smaller (floor of axes that grow)
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

/// What every output position reads: row-major [output, taps].
struct ResizeTable {
  int64_t taps = 1;
  std::vector<int64_t> indices;  ///< inside [0, input)
  std::vector<double> weights;
  std::vector<bool> outside;  ///< [output]: the extrapolation value instead

  /// Whether every position reads itself.
  bool IsIdentity() const;
  bool HasOutside() const;
};

/// The table of an axis. Coordinates, coefficients and neighbours as in ONNX's operator
/// documentation (Resize-19) and its reference implementation.
ResizeTable MakeResizeTable(const ResizeAxis& axis, const ResizeRule& rule);

}  // namespace hone::graph::ops
