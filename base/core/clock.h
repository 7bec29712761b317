#pragma once

#include <cstdint>

// The only place (with fake_clock.h) where Hone learns what time it is, as timed_wait.h is where
// threads wait for it to pass. Clocks are passed by constructor; no other file of Hone calls a
// clock or sleeps.
namespace hone {

/// Time since some fixed point, never going back. Thread-safe.
class MonotonicClock {
 public:
  virtual ~MonotonicClock() = default;
  virtual int64_t NowNs() const = 0;

  /// Returns after at least `duration_ns`; at once if that is not positive.
  virtual void SleepNs(int64_t duration_ns) const = 0;
};

/// Time of day. Thread-safe.
class WallClock {
 public:
  virtual ~WallClock() = default;

  /// Nanoseconds since 1970-01-01 00:00 UTC; may jump.
  virtual int64_t UnixNs() const = 0;
};

/// CLOCK_MONOTONIC of this machine.
class SystemMonotonicClock final : public MonotonicClock {
 public:
  int64_t NowNs() const override;
  void SleepNs(int64_t duration_ns) const override;
};

/// CLOCK_REALTIME of this machine.
class SystemWallClock final : public WallClock {
 public:
  int64_t UnixNs() const override;
};

}  // namespace hone
