#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/core/clock.h"

namespace hone::runtime::testing {

/// Stands still but when the test moves it, and knows how often the test's thread has looked: a
/// thread that spins on it does so until there is work, however busy the machine is.
class WatchedClock final : public MonotonicClock {
 public:
  int64_t NowNs() const override {
    const int64_t now_ns = now_ns_.load();
    if (std::this_thread::get_id() == caller_) {
      seen_ns_.store(now_ns);
      looks_.fetch_add(1);
    }
    return now_ns;
  }
  void SleepNs(int64_t ns) const override { now_ns_.fetch_add(ns); }

  int looks() const { return looks_.load(); }
  /// By another thread: returns when the test's has looked `times` times more than it had.
  void AwaitLooks(int before, int times) const {
    while (looks() < before + times) std::this_thread::yield();
  }

  /// By another thread: returns when the test's has seen what time it is.
  void AwaitSeen() const {
    while (seen_ns_.load() < now_ns_.load()) std::this_thread::yield();
  }

 private:
  const std::thread::id caller_ = std::this_thread::get_id();
  mutable std::atomic<int> looks_{0};
  mutable std::atomic<int64_t> seen_ns_{0};
  mutable std::atomic<int64_t> now_ns_{1'000'000'000};
};

}  // namespace hone::runtime::testing
