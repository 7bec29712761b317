#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hone::graph {

/// Where channels stand after a tensor was reshaped.
struct ReshapedChannels {
  size_t axis = 0;
  int64_t inner = 1;
  /// So many stand along the axis: as many as before; more, the same ones repeated; or fewer, each
  /// of which is every `count`-th of before. 0: single channels cannot be told apart.
  int64_t count = 0;
  /// Where the axis was split: so many of its places lie in each of the first part. 0: it was not.
  int64_t together = 0;
};

/// Follows channels that stand along a dimension of `from`, `inner` places side by side for each,
/// to a shape of as many elements.
ReshapedChannels ReshapeChannels(const std::vector<int64_t>& from, const std::vector<int64_t>& to,
                                 size_t axis, int64_t inner);

}  // namespace hone::graph
