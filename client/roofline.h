#pragma once

#include <cstdint>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "compiler/workload_cost.h"
#include "ir/target.h"

namespace hone::client {

/// What this machine can do at most on a target's threads, measured just now.
struct Roofline {
  double flop_per_second = 0;      ///< f32 multiply-adds, two each
  double l2_bytes_per_second = 0;  ///< reading what fits the threads' L2
  double l3_bytes_per_second = 0;
  double memory_bytes_per_second = 0;

  /// No schedule is faster than this, ns: arithmetic at the peak, or every byte moved once from
  /// the level of memory that can hold them.
  double BoundNs(const compiler::WorkloadCost& cost, const ir::Target& target) const;
};

/// What a farm's device says of itself (measure::DeviceProbes): caches are not probed, so bytes
/// count where memory alone can hold them.
Roofline ProbedRoofline(double core_flop_per_second, double memory_bytes_per_second,
                        const ir::Target& target);

/// Measures in about a fifth of a second. FailedPrecondition when this host lacks the target's
/// instructions.
absl::StatusOr<Roofline> MeasureRoofline(const ir::Target& target, const MonotonicClock& clock);

}  // namespace hone::client
