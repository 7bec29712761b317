#pragma once

#include <cstdint>
#include <vector>

#include "ir/artifact.h"
#include "ir/stmt.h"

namespace hone::ir {

/// From the phase's bound loops; siblings of different extents get the largest. A parallel loop is
/// one over blocks. Where its shared buffers take more than code may declare, all of them lie in
/// what the launch gives.
Launch LaunchOf(const LoopNest& nest, const Phase& phase);

/// Numbers of the maps that the phase copies boxes of, in the order in which its code gets them.
std::vector<int> MapsOf(const Phase& phase);

/// What the code of a GPU's kernel may declare of shared memory: PTX ISA, ".shared".
inline constexpr int64_t kMostDeclaredBytes = 48 << 10;
/// What the phase's shared buffers take, each aligned, one after the other by their numbers.
int64_t SharedBytesOf(const LoopNest& nest, const Phase& phase);
/// Bytes: 64, or 1,024 where the memory's bytes change places with that as their unit.
int64_t SharedAlignmentOf(const Buffer& buffer);
/// The next multiple.
int64_t AlignedTo(int64_t bytes, int64_t alignment);

/// The extent of a launch that loops of this kind run over; null: such loops are not launched.
int64_t Launch::*AxisOf(LoopKind kind);

}  // namespace hone::ir
