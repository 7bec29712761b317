#pragma once

#include <algorithm>
#include <cstdint>

namespace hone::runtime {

/// How long to spin before sleeping: less when it did not pay lately. Not thread-safe.
class SpinBudget {
 public:
  explicit SpinBudget(int64_t most_ns) : most_ns_(most_ns), ns_(most_ns) {}

  int64_t ns() const { return ns_; }
  /// What was waited for came while spinning, or not.
  void Learn(bool came) {
    ns_ = came ? std::min(most_ns_, 2 * ns_) : std::max(most_ns_ / 16, ns_ / 2);
  }

 private:
  int64_t most_ns_;
  int64_t ns_;
};

}  // namespace hone::runtime
