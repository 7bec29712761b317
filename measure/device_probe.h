#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "ir/per_kind.h"
#include "ir/target.h"
#include "measure/device_rates.h"

namespace hone::measure {

/// Measures a kind of device. Thread-safe, but what others run beside it shows.
class DeviceProbe {
 public:
  virtual ~DeviceProbe() = default;

  /// In about a fifth of a second. The host can run the target.
  virtual absl::StatusOr<DeviceRates> Rates(const ir::Target& target,
                                            const MonotonicClock& clock) const = 0;
  /// DeviceRates::operations_per_second alone, as soon as the kind can tell them.
  virtual absl::StatusOr<ir::ByUnit<double>> Operations(const ir::Target& target,
                                                        const MonotonicClock& clock) const;
  /// Half of the interquartile range of equal pieces of work of about a millisecond over their
  /// median, in about a tenth of a second.
  virtual absl::StatusOr<double> Noise(const ir::Target& target,
                                       const MonotonicClock& clock) const = 0;
  /// What its maker says of it, where no probe can be made here; nothing for a kind whose targets
  /// say no rates.
  virtual std::optional<DeviceRates> Nominal(const ir::Target&) const { return std::nullopt; }
  /// Bytes that its caches hold, nominally: what is larger is read from memory.
  virtual int64_t CacheBytes(const ir::Target& target) const = 0;
};

/// The kinds that can be probed. ir::PerKind says how to add one.
ir::PerKind<DeviceProbe>& ProbesOfKinds();

/// What DeviceProbe of the target's kind measures: Rates and Noise, or Rates alone.
/// kFailedPrecondition when this host lacks the target's instructions.
absl::StatusOr<DeviceProbes> ProbeDevice(const ir::Target& target, const MonotonicClock& clock);
absl::StatusOr<DeviceRates> MeasureRates(const ir::Target& target, const MonotonicClock& clock);

}  // namespace hone::measure
