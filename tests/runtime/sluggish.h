#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/core/clock.h"
#include "runtime/lane.h"

namespace hone::runtime::testing {

/// Stops each thread but the caller's, now and then and for a while, before it claims, within a
/// part and after it.
class Sluggish final : public LaneObserver {
 public:
  void At(Point, int slot) override {
    if (slot == 0) return;
    const uint64_t visit = visits_.fetch_add(1, std::memory_order_relaxed);
    if (visit % 7 == 0) std::this_thread::yield();
    if (visit % 61 == 0) clock_.SleepNs(300'000);
  }

 private:
  const SystemMonotonicClock clock_;
  std::atomic<uint64_t> visits_{0};
};

}  // namespace hone::runtime::testing
