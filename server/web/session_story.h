#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "db/model_verdict.h"
#include "db/record.h"
#include "measure/outcome.h"
#include "proto/farm_messages.h"
#include "search/search_event.h"

namespace hone::server::web {

/// How a session went, from its events: what the page draws. Not thread-safe.
class SessionStory {
 public:
  struct Task {
    std::string name;
    Hash128 workload;
    int count = 1;
    double default_ns = 0, best_ns = 0;  ///< 0: none measured yet, by whomever; of the comparison
                                         ///< in turns, once there was one
    /// As the search measured them, each at its own time; the comparison leaves them.
    double searched_default_ns = 0, searched_best_ns = 0;
    int64_t trials = 0, failed = 0;
    bool compared = false, replaced = false;
  };
  /// One candidate that was measured, or failed.
  struct Trial {
    int64_t attempt = 0;
    int task = 0;  ///< of tasks()
    std::string proposer;
    measure::Outcome outcome = measure::Outcome::kOk;
    double seconds = 0, ns = 0;  ///< when, by the session's clock; how long it took, 0: not timed
  };
  /// The sum of count · best latency over all tasks, at a time of the session's own.
  struct Point {
    double seconds = 0, ns = 0;
  };

  explicit SessionStory(const proto::SessionSpec& spec);

  /// Takes the session's next event; its kind may be any.
  void Take(const db::Event& event);

  int64_t sequence() const { return sequence_; }  ///< of the last event taken
  const std::vector<Task>& tasks() const { return tasks_; }
  /// What the search believed: falling, at most kMostPoints. Times of the final comparison are of
  /// another run and stand apart. A task without a result counts nothing; with its first it counts
  /// from the start, so that the curve never jumps up.
  const std::vector<Point>& curve() const { return curve_; }
  double elapsed_seconds() const { return elapsed_seconds_; }
  int64_t answered() const { return answered_; }
  int64_t failed() const { return answered_ - outcomes_[0]; }
  const std::array<int64_t, measure::kNumOutcomes>& outcomes() const { return outcomes_; }
  /// Σ count · latency of the tasks that have a best so far. The sum of the defaults is 0 where one
  /// of them is not known.
  double TotalNs(bool best) const;
  /// Where the search began: Σ count · latency by default, as the curve counts; 0 where one of them
  /// is not known.
  double SearchedDefaultNs() const;
  /// The newest kNewest, and of each task the kFastest that ran in the least time; newest first,
  /// each once.
  std::vector<Trial> Trials() const;
  /// Tasks that have a best.
  int64_t measured_tasks() const;
  /// The newest of the whole model; none was made, or decided.
  const std::optional<db::ModelVerdict>& verdict() const { return verdict_; }
  /// Until the nearest of the session's limits, by its own clock and pace; nothing when it has no
  /// limit or no pace yet.
  std::optional<double> SecondsLeft(const proto::SessionSpec& spec, int64_t now_unix_ms) const;

  static constexpr size_t kMostPoints = 512, kNewest = 60, kFastest = 3;

 private:
  void Measured(const proto::SessionEvent& event);
  void Keep(const Trial& trial);
  /// What the session's search knows, whoever measured it.
  void Found(const search::FoundEvent& found);
  /// A time of the search, better or not.
  void Searched(Task& task, double ns);
  void Append();

  std::vector<Task> tasks_;
  std::vector<Point> curve_;
  std::map<int64_t, Trial> open_;              // by attempt
  std::deque<Trial> newest_;                   // oldest first
  std::map<int, std::vector<Trial>> fastest_;  // by task, fastest first
  std::array<int64_t, measure::kNumOutcomes> outcomes_{};
  int64_t answered_ = 0, sequence_ = 0;
  double elapsed_seconds_ = 0;
  std::optional<db::ModelVerdict> verdict_;
};

}  // namespace hone::server::web
