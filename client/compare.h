#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.h"

namespace hone::client {

/// How far an output may be from what is expected, element by element:
/// |y - e| <= absolute * max|e| + relative * |e|, the maximum over finite expected values. Only
/// integers of 8 bits may differ at all.
struct Tolerance {
  double absolute = 1e-4;
  double relative = 1e-3;
  double steps = 0;  ///< 8-bit integers: allowed beside the others

  bool operator==(const Tolerance&) const = default;
};

/// What a correct program may differ by: f32 and f64 1e-4 and 1e-3; f16 and bf16, which are rounded
/// between operators here and not there, two of their steps of the largest value and four of the
/// value; i8 and u8, where a sum may fall on either side of a rounding, one step; all else nothing.
Tolerance DefaultTolerance(ir::DType dtype);

/// What CompareTensors found.
struct Comparison {
  int64_t elements = 0;
  int64_t differing = 0;      ///< outside the tolerance
  double max_difference = 0;  ///< largest |y - e| where both are finite
  double worst_share = 0;     ///< largest |y - e| / allowed, infinite where nothing was allowed
  int64_t worst = -1;         ///< row-major element of it; -1 when all are equal
  double worst_value = 0, worst_expected = 0;

  bool ok() const { return differing == 0; }
};

/// Types must be equal. Bool and integers of more than 8 bits must be equal exactly; NaN equals
/// NaN, an infinity equals itself.
Comparison CompareTensors(const graph::TensorData& value, const graph::TensorData& expected,
                          const Tolerance& tolerance);

/// Row-major element number as "[0, 3, 17]".
std::string IndexText(int64_t element, const std::vector<int64_t>& shape);

}  // namespace hone::client
