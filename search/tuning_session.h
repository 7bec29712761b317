#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "db/database.h"
#include "db/lookup.h"
#include "measure/measurer.h"
#include "search/median_interval.h"
#include "search/session_options.h"
#include "search/shared_tuner.h"
#include "search/tuner.h"

namespace hone::search {

/// One finished comparison of a task's best against its default.
struct TaskVerdict {
  bool compared = false;
  bool replaced = false;  ///< the best is faster with the interval's lower bound above 1.01
  bool put_back = false;  ///< won here, but lost in the model
  double default_ns = 0, best_ns = 0;
  std::string trace;  ///< of what is best now
  /// Samples of the comparison, ns; only the winner's where an earlier run of the session made it.
  std::vector<int64_t> default_samples, best_samples;
  bool noisy = false;  ///< other programs disturbed best_samples
};

/// What look-ups know the model of these tasks by.
Hash128 ModelHashOf(const std::vector<TuningTask>& tasks);

/// Runs one tuning session on a Measurer: commits every event before it acts on it, trains models,
/// compares finalists. To be used by one thread.
class TuningSession {
 public:
  TuningSession(db::Database& database, measure::Measurer& measurer, const MonotonicClock& clock,
                const WallClock& wall_clock, SessionOptions options);

  /// Sets up the tasks and, where the log has an unfinished session of the same request, replays
  /// it.
  absl::Status Start(std::vector<TuningTask> tasks);
  /// Until a budget is used up or nothing is left; `progress` is called after every round of
  /// results.
  absl::Status Run(const std::function<void(const TuningSession&)>& progress);

  /// The verdict of the whole model, once it was compared: an event that binds its look-ups. The
  /// winners of the tasks `confirmed` become confirmed records. What was put back and confirmed is
  /// an event "verdict" of its task, too. Key, session, model (but a batch's) are filled in here.
  absl::Status AddVerdict(db::ModelVerdict verdict, const std::vector<int>& confirmed);

  /// Not while another member uses it.
  const Tuner& tuner() const { return shared_->tuner; }
  const Hash128& id() const { return id_; }
  bool resumed() const { return resumed_; }
  StopReason reason() const { return reason_; }
  double ElapsedSeconds() const;
  /// Until `seconds` are used or the date has come, whichever is first; infinite without either.
  double SecondsLeft() const;
  const std::vector<TaskVerdict>& verdicts() const { return verdicts_; }
  /// Failed attempts by outcome, those of earlier runs of the session too.
  const std::map<measure::Outcome, int64_t>& failures() const { return failures_; }

 private:
  absl::Status FindUnfinished();
  /// Applies the events of an earlier run; false where they are about another search.
  absl::StatusOr<bool> ReplayEvents(const std::vector<db::Event>& events);
  absl::Status BeginAlone(std::vector<TuningTask> tasks, db::Batch batch);
  /// Becomes a member of a shared search, or finds itself to be one.
  absl::Status JoinShared(std::vector<TuningTask> tasks, db::Batch batch);
  /// Makes the spaces of tasks that the search has not got, while its other members go on.
  absl::Status MakeSpaces(std::vector<TuningTask>& tasks);
  absl::Status ReplayMembership();
  /// What an event of an earlier run says of the session itself.
  absl::Status ReplayOwn(const SearchEvent& event);
  absl::Status ReplayVerdict(const VerdictEvent& event);
  /// Traces and samples of what an earlier run of the session compared.
  absl::Status RestoreCompared();
  /// A point of a task that the log knows to be good.
  struct Known {
    int task = 0;
    uint64_t id = 0;
  };
  /// What the log knows of the tasks, to be imported once `batch` is durable. The events stand in
  /// it, by which the session joins: one that has joined is warm, or a restart would never make it
  /// so.
  absl::StatusOr<std::vector<Known>> WarmStart(db::Batch& batch);
  /// Makes the session's first batch durable, and its tasks warm.
  absl::Status BeginWarm(db::Batch batch);
  std::optional<uint64_t> Transplant(int task, const db::NearCandidate& near) const;
  /// False: the Tuner was asked and has nothing (dry_ says why).
  absl::StatusOr<bool> SubmitRound();
  int MostInFlight() const;
  void SubmitAll(const std::vector<Tuner::Proposal>& proposals);
  bool NothingUnderWay();
  absl::Status TakeResults(const std::vector<measure::MeasureResult>& results);
  /// What results are for the log and for the Tuner.
  struct Answers {
    struct Of {
      int64_t attempt = 0;
      measure::Outcome outcome = measure::Outcome::kWorkerLost;
      double median_ns = 0, cost_seconds = 0;
      TaskSearch::OnPart part;
    };
    db::Batch batch;
    std::vector<Of> of;
    void ApplyTo(Tuner& tuner) const;
  };
  absl::StatusOr<Answers> AnswersOf(const std::vector<measure::MeasureResult>& results);
  absl::Status Train();
  /// The search ranks by it once the batch, with its bytes and its event, is durable.
  absl::Status PutModel(db::Batch batch, std::shared_ptr<const costmodel::XgboostModel> model);
  /// Proposes, takes results and trains in turns, until a budget is used up or nothing is left.
  absl::Status SearchAlone(const std::function<void(const TuningSession&)>& progress);
  // session_shared.cc: the same with results on this thread and the rest on another.
  absl::Status SearchBeside(const std::function<void(const TuningSession&)>& progress);
  /// The other thread.
  absl::Status Think();
  void WaitForRoom(bool more);
  /// What the search knows of its tasks and its own stream does not say yet; under the lock.
  void TellFound(db::Batch& batch);
  void BeginResults(Answers answers);
  void BeginModel(db::Batch batch, std::shared_ptr<const costmodel::XgboostModel> model);
  /// Begins to make a batch durable by `append`; the Tuner learns of it in the log's order.
  void Begin(const std::function<void(db::Batch, TunerQueue::Done)>& append, db::Batch batch,
             TunerQueue::Apply apply);
  /// Puts back candidates under way that the Measurer does not know; they do not count as failures.
  absl::Status GiveUpLost();
  /// Measuring does not work at all any more.
  absl::Status CheckLost(const measure::MeasureResult& result);
  bool Interrupted() const { return options_.interrupted && options_.interrupted->load(); }
  /// Rounds of a comparison of these that fit the time which is left to each of `tasks_left`; 0
  /// where not even the fewest fit what is left to all.
  int RoundsFor(const std::vector<uint64_t>& finalists, int task, int tasks_left) const;
  absl::Status FinalComparisons();
  absl::Status CompareTask(int task, int tasks_left);
  absl::Status ChooseThreads();
  /// Records the fewest threads with which the best of one compared task is as fast.
  absl::Status ChooseThreadsOf(size_t local);
  absl::Status CompareInputs(int task, const std::vector<measure::MeasureInput>& inputs,
                             int rounds);
  static constexpr int64_t kCollectNs = 200'000'000;
  static constexpr int64_t kOthersNs = 50'000'000;
  bool OutOfBudget();
  void TellSecondsLeft();
  bool DiskIsFull();
  /// Keeps a part of the time that is left for the comparisons at the end.
  void ReserveFinal();
  /// The part of `seconds` for the search, without what is kept.
  double SearchSeconds() const;
  /// For the comparisons of finalists: before_end comes after them.
  double SecondsToCompare() const { return SecondsLeft() - reserve_seconds_; }
  db::RecordKey KeyOf(int task) const;
  db::TuningRecord MakeRecord(int task, const std::string& trace,
                              const std::vector<int64_t>& samples, db::Rigor rigor,
                              bool noisy = false);
  db::Event MakeEvent(const SearchEvent& event) const;
  bool shared() const { return options_.join != nullptr; }
  std::unique_lock<std::mutex> Lock() { return shared_->Lock(); }
  /// The number among this session's tasks of one of the Tuner's.
  int LocalOf(int place) const;
  /// A new session's row, device and first event.
  void AddSessionTo(db::Batch& batch, const JoinEvent& first_event);
  /// Tells what was proposed in the Tuner's stream, and in the session's own where that is another.
  void AddProposed(const Tuner::Proposal& p, db::Batch& batch);
  /// Others measure what this one waits for.
  bool OthersAtWork();
  /// Makes results durable: options_.commit_results, else Append.
  absl::Status CommitResults(const db::Batch& batch);
  measure::MeasureInput InputOf(const Tuner::Proposal& p, measure::MeasureKind kind) const;

  db::Database& db_;
  measure::Measurer& measurer_;
  const MonotonicClock& clock_;
  const WallClock& wall_clock_;
  SessionOptions options_;
  std::shared_ptr<SharedTuner> shared_;
  Tuner* tuner_ = nullptr;       ///< that of shared_; used under its lock
  std::vector<int> places_;      ///< of this session's tasks in the Tuner
  std::vector<Hash128> hashes_;  ///< of their Workloads
  /// With the extensions that each can use, as records have them.
  std::vector<std::string> targets_;
  Hash128 model_;  ///< ModelHashOf them all
  struct Told {
    double default_ns = 0, best_ns = 0;
  };
  std::vector<Told> told_;  ///< by task, in the session's own stream; guarded by flight_mutex_
  Hash128 member_ = Tuner::kAlone;
  Hash128 id_;
  bool resumed_ = false;
  int64_t start_ns_ = 0;
  double earlier_seconds_ = 0;   ///< used by earlier runs of the session
  int64_t earlier_charged_ = 0;  ///< attempts of earlier runs that were answered and not lost
  std::mutex flight_mutex_;
  std::condition_variable flight_changed_;
  std::map<int64_t, Tuner::Proposal> in_flight_;  ///< guarded by flight_mutex_
  bool thinking_over_ = false;                    ///< guarded by flight_mutex_
  /// What one of the two threads met first, or the log, which may tell it late. Thread-safe.
  class Begun {
   public:
    void Begin() {
      const std::lock_guard lock(mutex_);
      ++unsettled_;
    }
    void Settle(const absl::Status& status) {
      const std::lock_guard lock(mutex_);
      --unsettled_;
      status_.Update(status);
    }
    void Fail(const absl::Status& status) {
      const std::lock_guard lock(mutex_);
      status_.Update(status);
    }
    absl::Status status() const {
      const std::lock_guard lock(mutex_);
      return status_;
    }
    int64_t unsettled() const {
      const std::lock_guard lock(mutex_);
      return unsettled_;
    }

   private:
    mutable std::mutex mutex_;
    absl::Status status_;
    int64_t unsettled_ = 0;  ///< commits of results that nothing was heard of
  };
  const std::shared_ptr<Begun> begun_ = std::make_shared<Begun>();
  double told_seconds_ = 0;             ///< in the last event "elapsed" of results
  int64_t told_left_ns_ = 0;            ///< when tell_seconds_left was last called
  int64_t final_ns_ = 0;                ///< kept before the date
  double reserve_seconds_ = 0;          ///< kept for before_end
  StopReason dry_ = StopReason::kNone;  ///< why the Tuner proposed no more
  int64_t thinking_ns_ = 0;             ///< proposing and training
  int64_t last_training_ns_ = 0;
  int64_t lost_in_a_row_ = 0;
  StopReason reason_ = StopReason::kNone;
  int64_t space_seen_ns_ = 0;  ///< when free_bytes was last asked; 0: never
  std::vector<TaskVerdict> verdicts_;
  std::map<measure::Outcome, int64_t> failures_;
};

}  // namespace hone::search
