#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/core/hash128.h"
#include "proto/farm_messages.h"

namespace hone::bench {

/// What candidates would have measured, without running anything: full-size results whose best
/// keeps getting better, so that no search settles. The same candidate fails everywhere or nowhere.
/// Thread-safe.
class SimulatedTimes {
 public:
  /// The answer to a job but for its token.
  proto::WorkResult Answer(const proto::Job& job, int64_t run_ns);

 private:
  struct Task {
    int64_t answers = 0;
    double best_ns = 2e6;
  };
  double MedianNs(const proto::Job& job, const Hash128& candidate);

  std::mutex mutex_;
  std::unordered_map<Hash128, Task> tasks_;  // guarded by mutex_
};

}  // namespace hone::bench
