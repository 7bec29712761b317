#pragma once

#include <optional>

#include "ir/target.h"
#include "schedule/sketch.h"

namespace hone::schedule {

/// Sums of products as tiles of shared memory and registers (tile.h), what else there is as a grid
/// of threads. The numbers are those of a BlockTile, the same for all sums of the Workload. Nothing
/// where it has no such sum.
std::optional<Sketch> ProductsSketch(const ir::Workload& workload, const ir::Target& target);

}  // namespace hone::schedule
