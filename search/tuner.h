#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/core/hash128.h"
#include "db/workload_distance.h"
#include "ir/accuracy_class.h"
#include "ir/target.h"
#include "search/search_event.h"
#include "search/task_search.h"
#include "search/tuning_task.h"

namespace hone::search {

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
  int min_stale = TaskSearch::kMinStale;  ///< see TaskSearch::settled
  /// False: of a Space too large to score whole a sample is ranked, and no more.
  bool evolve = true;
};

/// The search over all tasks of its members (sessions): a stepped state machine without threads,
/// clock or I/O. A Workload that several members ask for is one TaskSearch: a result counts once,
/// for all of them; its priority is the sum of their expected gains; it goes on until the last of
/// them leaves. Every change is an event (search_event.h); replaying the same events gives the same
/// state and so the same next proposals. Not thread-safe.
class Tuner {
 public:
  /// With no member yet.
  Tuner(const ir::Target& target, const TunerOptions& options);
  /// With the one member kAlone, whose tasks are 0, 1, …
  Tuner(std::vector<TuningTask> tasks, const ir::Target& target, const TunerOptions& options);

  /// The member of a Tuner that has no other.
  static constexpr Hash128 kAlone{};
  struct Joining {
    Hash128 member;
    int64_t trials = 0;  ///< budget of attempts; 0: none
    uint64_t seed = 0;   ///< of the searches that begin with it
    /// Its attempts have this number or a larger one.
    int64_t first_attempt = 0;
    /// The part of its budget that an earlier search used which could not go on.
    int64_t charged = 0;
    std::vector<TuningTask> tasks;
  };
  /// Where the member's tasks stand, in their order. New Workloads get the next numbers, which are
  /// never used again; twice the same one, or a member twice, is a programmer error.
  std::vector<int> Join(Joining joining);
  /// Takes the Join just made back, numbers included: the log does not know of it, and what comes
  /// next has the numbers that a replay will give it. The last thing that happened to the Tuner.
  void UndoJoin(const Hash128& member);
  /// The event of a member that has joined.
  MemberEvent EventOf(const Hash128& member) const;
  /// Its open proposals are put back, and searches without a member end. An unknown one: nothing.
  void Leave(const Hash128& member);
  bool HasMember(const Hash128& member) const { return members_.contains(member); }
  std::vector<Hash128> Members() const;
  /// The member's tasks as Join returned them; empty for an unknown one.
  std::vector<int> TasksOf(const Hash128& member) const;

  struct Proposal {
    int64_t attempt = 0;  ///< number within the session
    int task = 0;
    uint64_t id = 0;
    Proposer proposer = Proposer::kRandom;
    std::string trace;
    Hash128 member;      ///< whose budget it uses
    std::string values;  ///< Space::ValuesText
  };
  /// The next candidates, at most n, on a member's budget: of its task with the largest expected
  /// gain per second, the stalest now and then. Nothing when each is exhausted or the budget is
  /// reserved. Commit the event of each (EventOf) before submitting it. One that is lost
  /// (kWorkerLost) gives its part of the budget back, and may be proposed again twice.
  std::vector<Proposal> Propose(int n, const Hash128& member = kAlone);
  static ProposedEvent EventOf(const Proposal& p);
  /// A result by attempt number, in any order, at most once each (later ones are ignored and false
  /// is returned).
  bool Result(int64_t attempt, measure::Outcome outcome, double median_ns, double cost_seconds,
              const TaskSearch::OnPart& part);
  bool Result(int64_t attempt, measure::Outcome outcome, double median_ns, double cost_seconds) {
    return Result(attempt, outcome, median_ns, cost_seconds, TaskSearch::OnPart());
  }
  /// A trained model; null: analytic only.
  void SetModel(std::shared_ptr<const costmodel::XgboostModel> model);
  /// A point of a task worth an early trial, from records of this or a near Workload.
  void Import(int task, uint64_t id) { searches_[static_cast<size_t>(task)]->AddTransplant(id); }
  /// What the events of a session are about: tasks, counts and the hashes of their Spaces. Events
  /// mean something only to a Tuner with the same fingerprint.
  std::string Fingerprint() const;
  /// Finds a Workload that a MemberEvent names by its hash.
  using WorkloadOf =
      std::function<absl::StatusOr<std::shared_ptr<const ir::Workload>>(const Hash128& hash)>;
  /// Applies an event of an earlier run; those that change no Tuner do nothing. A MemberEvent needs
  /// `workload_of`. kDataLoss: it does not fit this search; kFailedPrecondition: it is about Spaces
  /// of another Hone.
  absl::Status Replay(const SearchEvent& event, const WorkloadOf& workload_of = nullptr);
  /// Attempts proposed and not answered, as a restart finds them: submit them again.
  std::vector<Proposal> Open() const;
  /// A comparison's verdict (TaskSearch::SetCompared).
  void Compared(int task, double default_ns, double best_ns);

  /// How many numbers were given out so far; tasks that ended have no search.
  int num_tasks() const { return static_cast<int>(tasks_.size()); }
  bool searching(int i) const { return searches_[static_cast<size_t>(i)] != nullptr; }
  /// Open proposals of a task, whoever made them.
  int64_t open_of(int i) const { return in_flight_[static_cast<size_t>(i)]; }
  /// Attempts that count against a member's budget.
  int64_t charged(const Hash128& member) const;
  const TuningTask& task(int i) const { return tasks_[i]; }
  /// The task of this Workload, if there is one.
  std::optional<int> TaskOf(const Hash128& workload) const;
  /// What TuningTask::space may hold: made beside the search, of which it reads only constants.
  /// Thread-safe.
  std::shared_ptr<const schedule::Space> MakeSpace(const TuningTask& task) const;
  const TaskSearch& search(int i) const { return *searches_[i]; }
  TaskSearch& search(int i) { return *searches_[i]; }
  int64_t attempts() const { return attempts_; }
  int64_t answered() const { return answered_; }
  /// Proposed and neither answered nor given up.
  int64_t open() const { return static_cast<int64_t>(open_.size()); }
  /// Σ count · best (or default) latency over all tasks that have one, ns.
  double TotalNs(bool best) const;
  /// Rows for training, one TrainingTask a task; at most TaskSearch::kMostTrainingRows together,
  /// or 64 a task.
  std::vector<costmodel::TrainingTask> TrainingRows() const;
  int64_t training_rows() const;
  /// Why Propose gives nothing.
  StopReason reason() const { return reason_; }
  const costmodel::XgboostModel* model() const { return model_.get(); }
  const ir::Target& target() const { return target_; }
  /// Expected gain of one more batch of the task, ns of the model's time per second of tuning.
  double ExpectedGain(int task) const;

 private:
  struct Member {
    int64_t trials = 0, first_attempt = 0;
    uint64_t seed = 0;
    int64_t charged = 0;
    int64_t charged_before = 0;              ///< when it joined
    std::vector<std::pair<int, int>> tasks;  ///< and counts
    int tasks_before = 0;                    ///< of the Tuner
  };
  int PickTask(const Member& member);
  /// The task with the largest share of the model's time, where it would be the one tried least
  /// after a batch of `next` and more is expected of it; -1: another, or none has a time.
  int NeglectedBy(int next, const Member& member) const;
  int AddTask(TuningTask task, uint64_t seed);
  absl::Status ReplayProposed(const ProposedEvent& event);
  absl::Status ReplayMember(const MemberEvent& event, const WorkloadOf& workload_of);
  /// The best points of tasks of the same form, nearest first, moved into this task's Space.
  std::vector<uint64_t> SiblingHints(int task) const;
  /// After searches began or ended.
  void FindSiblings();

  const ir::Target target_;
  TunerOptions options_;
  std::map<Hash128, Member> members_;
  std::vector<TuningTask> tasks_;  ///< count: of all members
  std::vector<std::unique_ptr<TaskSearch>> searches_;
  std::vector<double> cost_seconds_;        ///< of one attempt, running mean by task
  std::vector<int64_t> last_batch_;         ///< latest attempt of each task; -1: none
  std::vector<int64_t> in_flight_;          ///< by task
  std::vector<db::WorkloadForm> forms_;     ///< of Workloads, by task
  std::vector<std::vector<int>> siblings_;  ///< tasks whose Workload differs in extents alone
  std::shared_ptr<const costmodel::XgboostModel> model_;
  Random random_;
  int64_t attempts_ = 0, answered_ = 0;
  std::map<int64_t, Proposal> open_;
  std::map<std::pair<int, uint64_t>, int> losses_;  ///< of a task's point, to infrastructure
  StopReason reason_ = StopReason::kNone;
};

}  // namespace hone::search
