#pragma once

#include <cstdint>

#include "ir/workload.h"

namespace hone::compiler {

/// What a Workload costs at least, whatever its schedule.
struct WorkloadCost {
  double flop = 0;   ///< arithmetic on values (not on indices); a multiply-add counts as two
  double bytes = 0;  ///< outputs, and what is read of inputs and constants, each moved once
};

/// Every Stage is counted as often as it is written, as if nothing were computed twice; a combiner
/// counts as one operation a point (a tuple as one for each part). Guards and indices are free.
WorkloadCost CostOf(const ir::Workload& workload);

}  // namespace hone::compiler
