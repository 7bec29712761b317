#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/graph.h"

namespace hone::graph {

/// The constant with only these places of one dimension, in this order.
ConstantPtr Sliced(const TensorData& data, size_t axis, const std::vector<int64_t>& keep);

}  // namespace hone::graph
