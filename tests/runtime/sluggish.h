#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "base/core/clock.h"
#include "base/core/random.h"
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

/// Stops every thread, callers too, at every point, for 0 to 300 us. A seed says how often at which
/// points.
class SeededStops final : public LaneObserver {
 public:
  explicit SeededStops(uint64_t seed) : seed_(seed) {
    Random random(seed);
    for (double& chance : chances_) chance = random.Chance(0.4) ? 0.3 * random.Uniform() : 0.005;
  }

  void At(Point point, int) override {
    Random random(seed_ + visits_.fetch_add(1, std::memory_order_relaxed));
    if (!random.Chance(chances_[static_cast<size_t>(point)])) return;
    if (random.Chance(0.3)) {
      std::this_thread::yield();
    } else {
      clock_.SleepNs(random.Between(0, 300'000));
    }
  }

 private:
  static constexpr size_t kPoints = static_cast<size_t>(Point::kBeforeWake) + 1;

  const uint64_t seed_;
  const SystemMonotonicClock clock_;
  std::array<double, kPoints> chances_{};
  std::atomic<uint64_t> visits_{0};
};

}  // namespace hone::runtime::testing
