#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "ir/per_kind.h"
#include "ir/target.h"

namespace hone::measure {

/// What a farm's worker says of its device.
struct DeviceProbes {
  double flop_per_second = 0;          ///< f32 multiply-adds, two each: of one core
  double memory_bytes_per_second = 0;  ///< of all threads of the target together
  double noise = 0;                    ///< spread of equal pieces of work, from 0
};

/// What fits so many bytes is read at this rate.
struct MemoryLevel {
  int64_t bytes = 0;
  double bytes_per_second = 0;
};

/// What a device can do at most with all that a target has.
struct DeviceRates {
  double flop_per_second = 0;       ///< f32 multiply-adds, two each
  std::vector<MemoryLevel> caches;  ///< the smallest first
  double memory_bytes_per_second = 0;
};

/// Measures a kind of device. Thread-safe, but what others run beside it shows.
class DeviceProbe {
 public:
  virtual ~DeviceProbe() = default;

  /// In about a quarter of a second. The host can run the target.
  virtual absl::StatusOr<DeviceProbes> Probe(const ir::Target& target,
                                             const MonotonicClock& clock) const = 0;
  /// In about a fifth of a second. The host can run the target.
  virtual absl::StatusOr<DeviceRates> Rates(const ir::Target& target,
                                            const MonotonicClock& clock) const = 0;
  /// What its maker says of it, where no probe can be made here; nothing for a kind whose targets
  /// say no rates.
  virtual std::optional<DeviceRates> Nominal(const ir::Target&) const { return std::nullopt; }
  /// Bytes that its caches hold, nominally: what is larger is read from memory.
  virtual int64_t CacheBytes(const ir::Target& target) const = 0;
};

/// The kinds that can be probed. ir::PerKind says how to add one.
ir::PerKind<DeviceProbe>& ProbesOfKinds();

/// DeviceProbe::Probe and Rates of the target's kind. kFailedPrecondition when this host lacks the
/// target's instructions.
absl::StatusOr<DeviceProbes> ProbeDevice(const ir::Target& target, const MonotonicClock& clock);
absl::StatusOr<DeviceRates> MeasureRates(const ir::Target& target, const MonotonicClock& clock);

}  // namespace hone::measure
