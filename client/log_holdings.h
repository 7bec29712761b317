#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/log_trace_source.h"
#include "ir/target.h"
#include "search/tuner.h"

namespace hone::client {

/// What a log would contribute to a tuning before anything is measured.
struct LogHoldings {
  struct Task {
    std::string rung;      ///< of the look-up ladder
    double median_ns = 0;  ///< of the record; 0: none
  };
  bool exists = false;      ///< else all is empty
  std::vector<Task> tasks;  ///< by the tasks asked for
  /// The last session of the same request, where it has not ended: the tuning would go on with it.
  std::string unfinished_session;
  double used_seconds = 0;  ///< of its budget

  /// Tasks with a record of their own Workload, target and device class.
  int64_t NumExact() const;
};

/// Reads the log at `path`, which need not exist. `request` is SessionOptions::request. Errors are
/// those of the log.
absl::StatusOr<LogHoldings> ReadHoldings(const std::string& path, const LogTerms& terms,
                                         const std::vector<search::TuningTask>& tasks,
                                         const ir::Target& target, const std::string& request);

/// "the log has records of 3 of 21 tasks", and what it would go on with; one or two lines.
std::string HoldingsText(const LogHoldings& holdings);

}  // namespace hone::client
