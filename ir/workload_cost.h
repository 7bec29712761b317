#pragma once

#include <numeric>

#include "ir/arithmetic_unit.h"
#include "ir/workload.h"

namespace hone::ir {

/// What a Workload costs, whatever its schedule: what tuning, reports, packages and the page count.
struct WorkloadCost {
  /// Arithmetic on values (not on indices), by the unit that is best at it; a multiply-add counts
  /// as two.
  ByUnit<double> operations{};
  double bytes = 0;  ///< outputs, and what is read of inputs and constants, each moved once

  /// The operations of all units.
  double flop() const { return std::accumulate(operations.begin(), operations.end(), 0.0); }
};

/// Every Stage is counted as often as it is written, as if nothing were computed twice; a combiner
/// counts as one operation a point (a tuple as one for each part). Guards and indices are free.
WorkloadCost CostOf(const Workload& workload);

/// Whether the Stage sums products of two different loaded values.
bool IsContraction(const Stage& stage);

/// The points of a Stage: the product of its extents.
double PointsOf(const Stage& stage);

}  // namespace hone::ir
