#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"

// How `hone bench` times one model, or several in turns.
namespace hone::client {

/// What can be timed: a model of ours, or another runtime's. Not thread-safe.
class BenchSubject {
 public:
  virtual ~BenchSubject() = default;
  /// Runs `runs` times, one after the other, and adds the time of each to `run_ns`.
  virtual absl::Status Run(int runs, std::vector<int64_t>& run_ns) = 0;
  /// Whether it has threads that wait busily for a while after a run.
  virtual bool spins() const = 0;
};

struct BenchTimes {
  std::vector<int64_t> run_ns;   ///< each counted run; never empty
  std::vector<int64_t> turn_ns;  ///< mean run of each turn; as many for each subject
};

/// Runs each subject for a tenth of `seconds` to warm up, then all in turns (A B, B A, A B, …)
/// until each has run for `seconds`, five turns at least. A turn is a twentieth of that, 1 to
/// 100 ms; its first run, which finds the caches of another model, is not counted unless it lasts a
/// turn by itself. Where one spins, a pause before each turn lets its threads fall asleep. A single
/// subject has no pauses, and all its runs count. Errors of Run.
absl::StatusOr<std::vector<BenchTimes>> RunBenchTurns(const std::vector<BenchSubject*>& subjects,
                                                      double seconds, const MonotonicClock& clock);

}  // namespace hone::client
