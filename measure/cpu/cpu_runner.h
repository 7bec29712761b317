#pragma once

#include "measure/kind_runner.h"

namespace hone::measure {

/// Kernels run on a Crew in the runner's process; its clock is the host's.
const KindRunner& CpuRunner();

}  // namespace hone::measure
