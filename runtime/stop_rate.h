#pragma once

#include <cstdint>

namespace hone::runtime {

/// Whether the system stops a thread time and again, as where another program runs on its CPU. Not
/// thread-safe: each thread asks its own.
class StopRate {
 public:
  /// `stops` tells how often the calling thread was stopped so far. It is asked again after 0.2 s
  /// at the earliest; until then the answer stays.
  bool IsHigh(int64_t now_ns, int64_t (*stops)()) {
    const int64_t passed_ns = now_ns - since_ns_;
    if (asked_ && passed_ns >= 0 && passed_ns < kLookNs) return high_;
    const int64_t count = stops();
    high_ = asked_ && passed_ns > 0 && (count - stops_) * kBetweenNs >= passed_ns;
    asked_ = true;
    since_ns_ = now_ns;
    stops_ = count;
    return high_;
  }

 private:
  // A CPU that two programs share goes from one to the other every 3 or 4 ms, that of a program by
  // itself is taken away a few times a second.
  static constexpr int64_t kLookNs = 200'000'000, kBetweenNs = 18'000'000;

  bool asked_ = false;
  int64_t since_ns_ = 0;
  int64_t stops_ = 0;
  bool high_ = false;
};

}  // namespace hone::runtime
