#pragma once

#include <cstdint>

#include "ir/stmt.h"

namespace hone::ir {

/// The grid that a GPU runs a phase on: blocks, and threads of each.
struct Launch {
  int64_t grid_x = 1, grid_y = 1;
  int64_t block_x = 1, block_y = 1;
  bool operator==(const Launch&) const = default;
};

/// From the phase's bound loops; siblings of different extents get the largest. A parallel loop is
/// one over blocks.
Launch LaunchOf(const Phase& phase);

/// The extent of a launch that loops of this kind run over; null: such loops are not launched.
int64_t Launch::*AxisOf(LoopKind kind);

}  // namespace hone::ir
