#pragma once

#include <optional>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "compiler/workload_cost.h"
#include "ir/target.h"
#include "measure/device_probe.h"

namespace hone::client {

/// What a device can do at most with all that a target has.
struct Roofline : measure::DeviceRates {
  /// No schedule is faster than this, ns: arithmetic at the peak, or every byte moved once from
  /// the level of memory that can hold them.
  double BoundNs(const compiler::WorkloadCost& cost) const;

  bool nominal = false;  ///< what the maker says; no probe was made
};

/// What a farm's device says of itself (measure::DeviceProbes): caches are not probed, so bytes
/// count where memory alone can hold them.
Roofline ProbedRoofline(double core_flop_per_second, double memory_bytes_per_second,
                        const ir::Target& target);

/// This machine's, measured just now: measure::MeasureRates.
absl::StatusOr<Roofline> MeasureRoofline(const ir::Target& target, const MonotonicClock& clock);

/// This machine's where it can run the target, else the nominal one of the target's card; nothing
/// where there is none.
absl::StatusOr<std::optional<Roofline>> FindRoofline(const ir::Target& target,
                                                     const MonotonicClock& clock);

}  // namespace hone::client
