#pragma once

#include <cstdint>

#include "ir/artifact.h"
#include "ir/stmt.h"

namespace hone::ir {

/// From the phase's bound loops; siblings of different extents get the largest. A parallel loop is
/// one over blocks.
Launch LaunchOf(const Phase& phase);

/// The extent of a launch that loops of this kind run over; null: such loops are not launched.
int64_t Launch::*AxisOf(LoopKind kind);

}  // namespace hone::ir
