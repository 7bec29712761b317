#pragma once

#include <optional>

#include "ir/target.h"
#include "schedule/sketch.h"

namespace hone::schedule {

/// Sums of products of f16, bf16 or bytes as tiles that tensor cores multiply (warp_tile.h), other
/// sums of products as tiles of threads (tile.h), what else there is as by default. The numbers are
/// those of a WarpTile, the same for all sums that suit tensor cores. Nothing where the Workload
/// has none.
std::optional<Sketch> MmaSketch(const ir::Workload& workload, const ir::Target& target);

}  // namespace hone::schedule
