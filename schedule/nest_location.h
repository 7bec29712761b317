#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/expr.h"

namespace hone::schedule {

/// Where a tensor's elements lie at a point of lowering: element (i…) is at offset + Σ (i_d -
/// low_d)·stride_d of `buffer`.
struct Location {
  int buffer = -1;
  std::vector<ir::Expr> low;     ///< per dimension; null entries mean 0
  std::vector<int64_t> extent;   ///< per dimension: how many indices from low on exist
  std::vector<int64_t> strides;  ///< elements
  int64_t offset = 0;
  /// Not empty: an accumulation tile indexed by the iterations of these loops of its Stage (strides
  /// by loop), so that its indices are constants whatever the loops were fused from.
  std::vector<int> tile_loops;
  /// False: a tile that sticks out of its tensor, and what sticks out is not written.
  bool filled = true;
  ir::Expr slot = {};  ///< a pipeline's tile: elements before the one of this iteration
  /// Not 0: the last dimension's rows are cut into pieces of 64, so many elements apart.
  int64_t piece = 0;
  bool whole() const { return low.empty() && tile_loops.empty(); }
};

/// While what is computed at a pipelined loop is made.
struct Pipeline {
  int64_t stages = 1;
  ir::Expr slot;               ///< number of the tile
  std::map<int, int> buffers;  ///< by tensor: the tiles
  int barriers = -1;           ///< the buffer where boxes arrive; -1: threads copy
  int64_t bytes = 0;           ///< of the boxes of an iteration
  bool boxes() const { return barriers >= 0; }
};

}  // namespace hone::schedule
