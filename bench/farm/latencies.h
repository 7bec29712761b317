#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace hone::bench {

/// Durations of one kind, all kept. Thread-safe.
class Latencies {
 public:
  struct Summary {
    int64_t count = 0;
    double p50_ms = 0, p99_ms = 0, worst_ms = 0;
  };

  void Add(int64_t ns) {
    const std::lock_guard lock(mutex_);
    all_ns_.push_back(ns);
  }
  size_t count() const {
    const std::lock_guard lock(mutex_);
    return all_ns_.size();
  }
  /// The summary of those from the `from`-th on.
  Summary Since(size_t from) const;

 private:
  mutable std::mutex mutex_;
  std::vector<int64_t> all_ns_;  // guarded by mutex_
};

}  // namespace hone::bench
