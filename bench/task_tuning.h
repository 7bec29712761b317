#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "db/database.h"
#include "ir/target.h"
#include "ir/workload.h"
#include "measure/local_measurer.h"

namespace hone::bench {

/// A candidate that was measured and right.
struct MeasuredTrace {
  std::string trace;
  std::string sketch;  ///< empty: not a point of the space
  double median_ns = 0;
};

/// What a search of one Workload found.
struct TunedTask {
  std::vector<MeasuredTrace> best_first;
  int64_t trials = 0;
  double default_ns = 0;         ///< 0: it failed
  double search_seconds = 0;     ///< proposing, building, checking, measuring and training
  double reference_seconds = 0;  ///< of it the default and its oracle, once per task

  struct Finalist {
    std::string trace;
    int trial = 0;  ///< that measured it, from 1
  };
  /// At each checkpoint, or where the search ended before it: what `hone tune` would compare in
  /// turns if it ended there with time to spare.
  std::vector<std::vector<Finalist>> finalists_at;
};

/// How a Workload is searched.
struct TaskTuningOptions {
  int64_t trials = 48;
  uint64_t seed = 0;
  bool trees = true;             ///< false: the analytic model ranks to the end
  bool evolve = true;            ///< false: of a large space only a sample is ranked
  std::vector<int> checkpoints;  ///< trials after which finalists are noted; rising
};

/// LocalMeasurerOptions as `hone tune` sets them for this target.
measure::LocalMeasurerOptions MeasurerOptionsFor(const ir::Target& target);

/// Searches one Workload as `hone tune` does but for the comparison of finalists in turns. It
/// begins from what `log` holds of near Workloads, and writes to it. Errors of the session; a
/// candidate's fault costs that candidate.
absl::StatusOr<TunedTask> TuneTask(std::shared_ptr<const ir::Workload> workload,
                                   const ir::Target& target,
                                   const measure::LocalMeasurerOptions& measuring,
                                   const TaskTuningOptions& options, db::Database& log,
                                   const MonotonicClock& clock);

}  // namespace hone::bench
