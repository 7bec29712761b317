#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/log_trace_source.h"
#include "client/open_log.h"
#include "client/tune_budget.h"
#include "db/database.h"
#include "ir/target.h"
#include "search/tuner.h"

namespace hone::client {

/// The last session of a request, where it has not ended: tuning goes on with it.
struct UnfinishedSession {
  std::string id;  ///< empty: there is none
  TuneSoFar so_far;
};
/// `request` is SessionOptions::request.
absl::StatusOr<UnfinishedSession> FindUnfinished(db::Database& log, const std::string& request);

/// What a log would contribute to a tuning before anything is measured.
struct LogHoldings {
  struct Task {
    std::string rung;      ///< of the look-up ladder
    double median_ns = 0;  ///< of the record; 0: none
  };
  bool exists = false;      ///< else all is empty
  std::vector<Task> tasks;  ///< by the tasks asked for
  UnfinishedSession unfinished;

  /// Tasks with a record of their own Workload, target and device class, predicted ones where the
  /// terms take those.
  int64_t NumExact() const;
};

/// Reads the log at `path`, which need not exist. `request` is SessionOptions::request. Errors are
/// those of the log.
absl::StatusOr<LogHoldings> ReadHoldings(const std::string& path, LogName name,
                                         const LogTerms& terms,
                                         const std::vector<search::TuningTask>& tasks,
                                         const ir::Target& target, const std::string& request);

/// "the log has records of 3 of 21 tasks", and what it would go on with; one or two lines.
std::string HoldingsText(const LogHoldings& holdings);

}  // namespace hone::client
