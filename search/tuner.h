#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/core/hash128.h"
#include "ir/accuracy_class.h"
#include "ir/target.h"
#include "search/task_search.h"

namespace hone::search {

/// One distinct Workload to tune.
struct TuningTask {
  std::shared_ptr<const ir::Workload> workload;
  Hash128 hash;
  std::string name;  ///< for people
  int count = 1;     ///< how often it occurs in the model
  double flop = 0;
  double bound_ns = 0;  ///< no schedule can be faster (roofline); 0: unknown
};

/// Why a Tuner proposes no more.
enum class StopReason : uint8_t {
  kNone,
  kTrials,
  kTime,
  kDate,
  kExhausted,
  kNothingExpected,
  kInterrupted,
  kDiskFull
};
std::string_view StopReasonName(StopReason reason);

struct TunerOptions {
  uint64_t seed = 0;
  int64_t trials = 0;  ///< budget of attempts; 0: none
  ir::AccuracyClass accuracy = ir::AccuracyClass::kDefault;
};

/// The search over all tasks of a session: a stepped state machine without threads, clock or I/O.
/// Every change is an event with a text form; replaying the same events gives the same state and so
/// the same next proposals. Not thread-safe.
class Tuner {
 public:
  Tuner(std::vector<TuningTask> tasks, const ir::Target& target, const TunerOptions& options);

  struct Proposal {
    int64_t attempt = 0;  ///< number within the session
    int task = 0;
    uint64_t id = 0;
    Proposer proposer = Proposer::kRandom;
    std::string trace;
  };
  /// The next candidates, at most n: of the task with the largest expected gain per second, the
  /// stalest now and then. Nothing when every task is exhausted or the budget is reserved. Commit
  /// the event of each (ProposedEvent) before submitting it.
  std::vector<Proposal> Propose(int n);
  static std::string ProposedEvent(const Proposal& p);
  /// A result by attempt number, in any order, at most once each (later ones are ignored and false
  /// is returned).
  bool Result(int64_t attempt, measure::Outcome outcome, double median_ns, double cost_seconds);
  static std::string ResultEvent(int64_t attempt, measure::Outcome outcome, double median_ns,
                                 double cost_seconds);
  /// A trained model; null: analytic only.
  void SetModel(std::shared_ptr<const costmodel::XgboostModel> model);
  /// A point of a task worth an early trial, from records of this or a near Workload.
  void Import(int task, uint64_t id) { searches_[static_cast<size_t>(task)]->AddTransplant(id); }
  static std::string ImportedEvent(int task, uint64_t id);
  /// What the events of a session are about: tasks, counts and the hashes of their Spaces. Events
  /// mean something only to a Tuner with the same fingerprint.
  std::string Fingerprint() const;
  /// Applies an event of an earlier run of the session ("proposed", "result", "imported").
  absl::Status Replay(const std::string& type, const std::string& payload);
  /// Attempts proposed and not answered, as a restart finds them: submit them again.
  std::vector<Proposal> Open() const;

  int num_tasks() const { return static_cast<int>(tasks_.size()); }
  const TuningTask& task(int i) const { return tasks_[i]; }
  /// The task of this Workload, if there is one.
  std::optional<int> TaskOf(const Hash128& workload) const;
  const TaskSearch& search(int i) const { return *searches_[i]; }
  TaskSearch& search(int i) { return *searches_[i]; }
  int64_t attempts() const { return attempts_; }
  int64_t answered() const { return answered_; }
  /// Proposed and neither answered nor given up.
  int64_t open() const { return static_cast<int64_t>(open_.size()); }
  /// Σ count · best (or default) latency over all tasks that have one, ns.
  double TotalNs(bool best) const;
  /// Rows for training, one TrainingTask a task.
  std::vector<costmodel::TrainingTask> TrainingRows() const;
  int64_t training_rows() const;
  /// Why Propose gives nothing.
  StopReason reason() const { return reason_; }
  const costmodel::XgboostModel* model() const { return model_.get(); }
  /// Expected gain of one more batch of the task, ns of the model's time per second of tuning.
  double ExpectedGain(int task) const;

 private:
  int PickTask();
  /// The best points of tasks of the same form, nearest first, moved into this task's Space.
  std::vector<uint64_t> SiblingHints(int task) const;
  void FindSiblings();

  std::vector<TuningTask> tasks_;
  TunerOptions options_;
  std::vector<std::unique_ptr<TaskSearch>> searches_;
  std::vector<double> cost_seconds_;        ///< of one attempt, running mean by task
  std::vector<int64_t> last_batch_;         ///< latest attempt of each task; -1: none
  std::vector<int64_t> in_flight_;          ///< by task
  std::vector<std::vector<int>> siblings_;  ///< tasks whose Workload differs in extents alone
  std::shared_ptr<const costmodel::XgboostModel> model_;
  Random random_;
  int64_t attempts_ = 0, answered_ = 0;
  std::map<int64_t, Proposal> open_;
  StopReason reason_ = StopReason::kNone;
};

}  // namespace hone::search
