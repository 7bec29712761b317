#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "bench/search/pool.h"

namespace hone::bench {

struct ReplayOptions {
  int seeds = 10;
  double target_share = 0.95;  ///< of the pool's best throughput
  int threads = 2;
  int resamples = 4000;
  /// Train a task's trees on other tasks of the same operators too, at other shapes.
  bool same_operators = true;
};

/// Trials until a candidate as fast as `target_share` of the pool's best was measured.
struct ReplayedTask {
  std::string name;
  size_t candidates = 0, good = 0;
  double random = 0;          ///< expected trials of a random order: (n + 1) / (good + 1)
  std::vector<double> model;  ///< by seed
  std::vector<double> analytic;
};

struct Interval {
  double value = 0, low = 0, high = 0;
};

struct ReplayReport {
  std::vector<ReplayedTask> tasks;
  /// Geometric means over tasks of the ratio of mean trials, with 95 % bootstrap intervals over
  /// tasks and seeds.
  Interval model_over_random, analytic_over_random, model_over_analytic;
};

/// Searches each pool in batches as search::TaskSearch fills them (most slots by score, one by
/// spread, one at random), by trees that were trained on the pools of all other kernels and again
/// whenever 24 candidates more were measured, and by the analytic model alone.
absl::StatusOr<ReplayReport> Replay(const std::vector<Pool>& pools, const ReplayOptions& options);

}  // namespace hone::bench
