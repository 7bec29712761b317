#pragma once

#include "ir/workload.h"

namespace hone::schedule {

/// A Stage that algorithms/winograd.h can rewrite, or -1.
int FindWinogradStage(const ir::Workload& workload);

}  // namespace hone::schedule
