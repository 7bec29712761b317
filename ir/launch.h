#pragma once

#include <cstdint>

#include "ir/artifact.h"
#include "ir/stmt.h"

namespace hone::ir {

/// From the phase's bound loops; siblings of different extents get the largest. A parallel loop is
/// one over blocks. Where its shared buffers take more than code may declare, all of them lie in
/// what the launch gives.
Launch LaunchOf(const LoopNest& nest, const Phase& phase);

/// What the code of a GPU's kernel may declare of shared memory: PTX ISA, ".shared".
inline constexpr int64_t kMostDeclaredBytes = 48 << 10;
/// What the phase's shared buffers take, each 64-aligned.
int64_t SharedBytesOf(const LoopNest& nest, const Phase& phase);
inline constexpr int64_t kSharedAlignment = 64;

/// The extent of a launch that loops of this kind run over; null: such loops are not launched.
int64_t Launch::*AxisOf(LoopKind kind);

}  // namespace hone::ir
