#pragma once

#include "schedule/kind_sketches.h"

namespace hone::schedule {

/// For GPUs: a grid of threads for every Workload (grid.h), tiles in shared memory for those with
/// sums of products and convolutions (products.h; by tensor cores mma.h, wgmma.h), blocks of
/// threads for rows (rows.h), partial results of long sums (sums.h), and several elements a thread
/// of maps (maps.h). The default is tiles, rows, partial results or the grid, the first that there
/// is, with the later ones beside it.
const KindSketches& CudaSketches();

}  // namespace hone::schedule
