#pragma once

#include <atomic>
#include <cstdint>

#include "base/core/clock.h"

namespace hone {

/// A clock that stands still until told to go: for tests and simulations. Sleeping advances it.
/// Serves as both clocks; the wall clock is the monotonic one plus an offset that may jump.
class FakeClock final : public MonotonicClock, public WallClock {
 public:
  explicit FakeClock(int64_t start_ns = 0, int64_t unix_offset_ns = 0)
      : now_ns_(start_ns), unix_offset_ns_(unix_offset_ns) {}

  int64_t NowNs() const override { return now_ns_.load(); }
  void SleepNs(int64_t duration_ns) const override {
    if (duration_ns > 0) now_ns_ += duration_ns;
  }
  int64_t UnixNs() const override { return now_ns_.load() + unix_offset_ns_.load(); }

  void AdvanceNs(int64_t duration_ns) { now_ns_ += duration_ns; }
  void JumpWallNs(int64_t jump_ns) { unix_offset_ns_ += jump_ns; }

 private:
  mutable std::atomic<int64_t> now_ns_;  // a sleep of a const clock passes time
  std::atomic<int64_t> unix_offset_ns_;
};

}  // namespace hone
