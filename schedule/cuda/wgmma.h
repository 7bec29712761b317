#pragma once

#include <optional>

#include "ir/target.h"
#include "schedule/sketch.h"

namespace hone::schedule {

/// Sums of products of f16 or bf16 as tiles of warpgroups (group_tile.h) where the card has them,
/// what else there is as by default. The numbers are those of a GroupTile, the same for all sums
/// that suit it. Nothing where the Workload has none.
std::optional<Sketch> WgmmaSketch(const ir::Workload& workload, const ir::Target& target);
/// Whether it is the default where it is there: slices come as boxes, four or more at once, and
/// most multiprocessors get a tile of 64 x 64 or more.
bool IsDefaultWgmma(const Sketch& sketch);

}  // namespace hone::schedule
