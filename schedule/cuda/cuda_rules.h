#pragma once

#include "schedule/kind_sketches.h"

namespace hone::schedule {

/// For GPUs: a grid of threads for every Workload (grid.h), tiles in shared memory for those with
/// sums of products (products.h), which then are the default.
const KindSketches& CudaSketches();

}  // namespace hone::schedule
