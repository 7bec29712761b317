#pragma once

#include <cstdint>
#include <optional>

namespace hone::measure {

/// Watches what other programs do to a device while it measures. Not thread-safe.
class OthersWatch {
 public:
  virtual ~OthersWatch() = default;

  /// How many CPUs (of another kind: devices) others kept busy since the last call or the
  /// constructor; nullopt when that is too short ago to tell, or cannot be told.
  virtual std::optional<double> SinceLast() = 0;

  /// What is long enough to tell.
  static constexpr int64_t kLeastNs = 300'000'000;
  /// From this on a measurement is disturbed.
  static constexpr double kDisturbing = 0.25;
};

}  // namespace hone::measure
