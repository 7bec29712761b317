#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.h"

namespace hone::client {

/// How far a float output may be from what is expected, element by element:
/// |y - e| <= absolute * max|e| + relative * |e|, the maximum over finite expected values.
struct Tolerance {
  double absolute = 1e-4;
  double relative = 1e-3;
};

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

/// Types must be equal. Integers and bool must be equal exactly; NaN equals NaN, an infinity equals
/// itself.
Comparison CompareTensors(const graph::TensorData& value, const graph::TensorData& expected,
                          const Tolerance& tolerance);

/// Row-major element number as "[0, 3, 17]".
std::string IndexText(int64_t element, const std::vector<int64_t>& shape);

}  // namespace hone::client
