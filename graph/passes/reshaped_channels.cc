#include "graph/passes/reshaped_channels.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace hone::graph {
namespace {

using Shape = std::vector<int64_t>;

/// Dimensions of two shapes that are relabelled to each other.
struct Relabelled {
  size_t from = 0, from_end = 0, to = 0, to_end = 0;
};

/// Those around a dimension of `from`; none where it is of one place behind all others.
Relabelled RelabelledAround(const Shape& from, const Shape& to, size_t axis) {
  Relabelled part;
  while (part.from_end < from.size() && part.to_end < to.size()) {
    part.from = part.from_end;
    part.to = part.to_end;
    int64_t a = from[part.from_end++], b = to[part.to_end++];
    while (a != b) {
      if (a < b)
        a *= from[part.from_end++];
      else
        b *= to[part.to_end++];
    }
    if (axis < part.from_end) return part;
  }
  return {};
}

int64_t ProductOf(const Shape& shape, size_t from, size_t end) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from),
                         shape.begin() + static_cast<std::ptrdiff_t>(end), int64_t{1},
                         std::multiplies<>());
}

}  // namespace

ReshapedChannels ReshapeChannels(const Shape& from, const Shape& to, size_t axis, int64_t inner) {
  ReshapedChannels reshaped;
  const Relabelled part = RelabelledAround(from, to, axis);
  if (part.from_end == 0) return reshaped;
  const int64_t count = from[axis] / inner;
  const int64_t block = inner * ProductOf(from, axis + 1, part.from_end);
  for (size_t d = part.to; d < part.to_end; ++d) {
    const int64_t behind = ProductOf(to, d + 1, part.to_end);
    if (block % behind != 0 || to[d] % (block / behind) != 0) continue;
    const int64_t own = to[d] * behind / block;
    if (own <= reshaped.count || (own % count != 0 && count % own != 0)) continue;
    reshaped.axis = d;
    reshaped.inner = block / behind;
    reshaped.count = own;
  }
  for (size_t d = part.to; d < part.to_end && reshaped.together == 0; ++d)
    if (to[d] > 1 && to[d] < from[axis] && from[axis] % to[d] == 0)
      reshaped.together = from[axis] / to[d];
  return reshaped;
}

}  // namespace hone::graph
