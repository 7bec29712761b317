#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "bench/search/model_tasks.h"
#include "bench/search/replay.h"
#include "ir/target.h"

namespace hone::bench {

struct RegretOptions {
  size_t random = 3000;  ///< candidates of the random search, of which the best 20 are references
  int rounds = 24;       ///< of the comparison in turns
  int seeds = 1;         ///< searches of each variant, each from another seed
  std::vector<int> checkpoints = {16, 32, 64, 128};  ///< trials; rising
};

/// How far one way of searching was from the best known schedule of each task.
struct RegretOfVariant {
  std::string name;
  /// By checkpoint and task: latency of the finalist chosen by then over the best known, less one;
  /// the mean over seeds.
  std::vector<std::vector<double>> regret;
  /// By task: the trial that found the first schedule within 5 % of the best known among those that
  /// are chosen at the checkpoints, or all trials where none is; the mean over seeds.
  std::vector<double> trials;
};

struct RegretReport {
  std::vector<std::string> tasks;
  std::vector<RegretOfVariant> variants;  ///< "search" first, "random" last
};

/// Searches each task on this machine as `hone tune` does (search), without the records of the
/// other tasks (no warm start), without trees too (no trees), without evolution but with the
/// records (no evolution: the search itself in Spaces that are scored whole), and at random. The
/// finalists that each had at each checkpoint run in turns with the best of the random search. Half
/// of the rounds choose among finalists, as `hone tune` does, and the best known of all; the other
/// half say how fast those are, so that a regret may be a little below zero. What is told of the
/// random search is the expectation over all orders of its candidates; screened times of those that
/// did not run in turns are scaled.
absl::StatusOr<RegretReport> MeasureRegret(const std::vector<ModelTask>& tasks,
                                           const ir::Target& target, const RegretOptions& options,
                                           const MonotonicClock& clock);

/// The share `quantile` (0.5: the median) of values, which must not be empty, with the middle 95 %
/// when they are drawn again.
Interval QuantileOf(const std::vector<double>& values, double quantile);

/// Geometric mean of a / b over tasks, with the middle 95 % when tasks are drawn again.
Interval GeometricMeanOf(const std::vector<double>& a, const std::vector<double>& b);

/// The expected value of the one that stands first in `ranked` among n of them drawn at random; n
/// at most their number.
double ExpectedBest(const std::vector<double>& ranked, size_t n);

}  // namespace hone::bench
