#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "db/log_file.h"
#include "ir/target.h"

// What a log knows of one tuning session, put together for `hone report`.
namespace hone::client {

/// A latency with its interval, us; all 0: not measured.
struct Interval {
  double median_us = 0, low_us = 0, high_us = 0;
};

/// Best latency so far: `us` holds from `seconds` on.
struct CurvePoint {
  double seconds = 0;
  double us = 0;
};

struct ReportTask {
  Hash128 workload;
  std::string name;  ///< operators, or how the hash begins where the session does not tell
  int count = 1;     ///< how often it occurs in the model
  double flop = 0, bytes = 0;
  Interval by_default, best;
  std::string rigor, proposer;  ///< of the best
  int64_t tried = 0, failed = 0;
  double bound_us = 0;  ///< roofline; 0: not known
  std::vector<CurvePoint> curve;
  bool compared = false;  ///< `by_default` and `best` ran in turns: their ratio means something

  /// Best over default: the ratio and what its two intervals allow; 1 where one is not measured.
  double Gain() const;
  double GainLow() const;
  double GainHigh() const;
};

/// One candidate.
struct ReportTrial {
  int64_t number = 0;  ///< in the session, from 1
  size_t task = 0;     ///< of SessionReport::tasks
  double seconds = 0;  ///< when, by the session's clock
  double us = 0;       ///< 0: not timed
  std::string proposer, outcome;
};

struct SessionReport {
  db::Session session;
  std::string model, target, command;  ///< of the request; empty where it does not tell
  std::string device_class, fingerprint;
  std::string reason;                        ///< why it ended; empty: it has not
  std::optional<db::ModelVerdict> verdict;   ///< of the whole model; none was made, or decided
  std::optional<db::ModelVerdict> batch;     ///< on how its batch runs, the last one
  std::optional<db::ModelVerdict> branches;  ///< on how its branches run
  std::optional<db::ModelVerdict> cascades;  ///< on whether chains of layers run in bands
  double used_seconds = 0;                   ///< of tuning, pauses left out
  std::vector<ReportTask> tasks;             ///< largest share of the time by default first
  std::map<std::string, int64_t> outcomes;
  std::map<std::string, std::pair<int64_t, int64_t>> proposers;  ///< candidates, wins
  std::vector<CurvePoint> model_curve;  ///< Σ count · best, from when every task has a time
  /// The newest kNewest candidates and of each task the kFastest that ran in the least time; newest
  /// first, each once.
  std::vector<ReportTrial> trials;
  bool has_roofline = false;

  static constexpr size_t kNewest = 60, kFastest = 3;

  Interval ByDefault() const;  ///< Σ count · default over tasks that have both times
  Interval Best() const;
  /// "1 of 21 kernels": which those are; empty: all.
  std::string SumOf() const;
  /// Whether its times are the analytic model's.
  bool Predicted() const;
  /// Whether all of those were compared, so that the sums have a ratio.
  bool Compared() const;
};

/// The class of this machine's device of a target's kind.
using ClassOfHost = std::function<std::string(const ir::Target&)>;

/// Reads the session whose id begins with `prefix`; empty: the last one that measured something.
/// Errors: kNotFound, several such; those of the log. `clock` serves to measure the roofline, which
/// is done when this machine has a device of the session's class.
absl::StatusOr<SessionReport> ReadSessionReport(db::Database& log, const std::string& prefix,
                                                const ClassOfHost& class_of,
                                                const MonotonicClock& clock);

}  // namespace hone::client
