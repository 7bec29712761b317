#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
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

/// What a search of one Workload from an empty log found.
struct TunedTask {
  std::vector<MeasuredTrace> best_first;
  int64_t trials = 0;
  double default_ns = 0;         ///< 0: it failed
  double search_seconds = 0;     ///< proposing, building, checking, measuring and training
  double reference_seconds = 0;  ///< of it the default and its oracle, once per task
};

/// LocalMeasurerOptions as `hone tune` sets them for this target.
measure::LocalMeasurerOptions MeasurerOptionsFor(const ir::Target& target);

/// Searches one Workload with so many trials, as `hone tune` does but for the comparison of
/// finalists at the end. Errors of the session; a candidate's fault costs that candidate.
absl::StatusOr<TunedTask> TuneTask(std::shared_ptr<const ir::Workload> workload,
                                   const ir::Target& target,
                                   const measure::LocalMeasurerOptions& options, int64_t trials,
                                   uint64_t seed, const MonotonicClock& clock);

}  // namespace hone::bench
