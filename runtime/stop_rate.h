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
  // Measured (docs/THREADS.md): 20 to 35 stops a second on a CPU by itself, 88 to 130 where one or
  // two other programs run on it.
  static constexpr int64_t kLookNs = 200'000'000, kBetweenNs = 18'000'000;

  bool asked_ = false;
  int64_t since_ns_ = 0;
  int64_t stops_ = 0;
  bool high_ = false;
};

}  // namespace hone::runtime
