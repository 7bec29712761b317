#pragma once

#include <algorithm>
#include <cstdint>

namespace hone::runtime {

/// The least that a budget falls to: this part of the most.
inline constexpr int64_t kLeastShareOfSpin = 16;

/// The budget of so many threads, `most_ns` where the machine is theirs. A control group that
/// grants fewer CPUs (0: all of them) stops all threads when its time is used up: what spins takes
/// it from what computes, so only the least is left.
constexpr int64_t SpinWithin(int64_t most_ns, int threads, double granted_cpus) {
  const bool less = granted_cpus > 0 && granted_cpus < static_cast<double>(threads);
  return less ? most_ns / kLeastShareOfSpin : most_ns;
}

/// How long to spin before sleeping: less when it did not pay lately. Not thread-safe.
class SpinBudget {
 public:
  explicit SpinBudget(int64_t most_ns) : most_ns_(most_ns), ns_(most_ns) {}

  int64_t ns() const { return ns_; }
  /// What was waited for came while spinning, or not.
  void Learn(bool came) {
    ns_ = came ? std::min(most_ns_, 2 * ns_) : std::max(most_ns_ / kLeastShareOfSpin, ns_ / 2);
  }

 private:
  int64_t most_ns_;
  int64_t ns_;
};

}  // namespace hone::runtime
