#pragma once

#include <algorithm>
#include <cstdint>

#include "graph/graph.h"

namespace hone::graph {

/// The number of elements, with each extent of 0 counted as 1. It bounds the product of any of the
/// extents, which may overflow even where another extent is 0 and the tensor has no elements.
inline int64_t ExtentSpan(TensorType type) {
  std::replace(type.shape.begin(), type.shape.end(), int64_t{0}, int64_t{1});
  return type.NumElements();
}

}  // namespace hone::graph
