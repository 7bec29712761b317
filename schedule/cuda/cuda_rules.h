#pragma once

#include "schedule/kind_sketches.h"

namespace hone::schedule {

/// For GPUs: a grid of threads for every Workload (grid.h), tiles in shared memory for those with
/// sums of products (products.h), which then are the default, blocks of threads for rows
/// (rows.h), and several elements a thread of maps (maps.h).
const KindSketches& CudaSketches();

}  // namespace hone::schedule
