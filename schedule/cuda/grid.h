#pragma once

#include "schedule/kind_sketches.h"

namespace hone::schedule {

/// For GPUs: every Stage that is not inlined is a launch of its own, a thread for each element of
/// its result, or for a few that lie side by side; a thread reduces what its element needs. Stages
/// of a scan, whose steps are launches already, run in one thread. Every Workload has this
/// schedule; the numbers are threads of a block and elements of a thread.
const KindSketches& GridSketches();

}  // namespace hone::schedule
