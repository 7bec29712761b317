#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/graph.h"

namespace hone::graph {

/// The number of elements with extents of 0 counted as 1: a bound of the products of some of the
/// extents, which beside a 0 may overflow although the tensor has no element.
inline int64_t ExtentSpan(TensorType type) {
  std::replace(type.shape.begin(), type.shape.end(), int64_t{0}, int64_t{1});
  return type.NumElements();
}

}  // namespace hone::graph
