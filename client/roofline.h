#pragma once

#include <optional>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "ir/target.h"
#include "measure/device_probe.h"

namespace hone::client {

/// What a device can do at most with all that a target has.
struct Roofline : measure::DeviceRates {
  bool nominal = false;  ///< what the maker says; no probe was made
};

/// This machine's where it can run the target, measured just now (measure::MeasureRates), else the
/// nominal one of the target's card; nothing where there is none.
absl::StatusOr<std::optional<Roofline>> FindRoofline(const ir::Target& target,
                                                     const MonotonicClock& clock);

}  // namespace hone::client
