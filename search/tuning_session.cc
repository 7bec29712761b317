#include "search/tuning_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/core/random_id.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/versions.h"
#include "ir/kind_facts.h"

namespace hone::search {

namespace {
constexpr int64_t kFirstModelRows = 24;  ///< below this the analytic model ranks
constexpr int64_t kRowsPerModel = 24;
constexpr int64_t kGrowth = 8;  ///< a farm's next model: when there are rows / kGrowth more
constexpr double kTellSeconds = 1;
constexpr int64_t kTellNs = 1'000'000'000;
constexpr int kMostProposed = 256;    ///< in one commit
constexpr double kFinalShare = 0.12;  ///< of the time budget kept for final comparisons
constexpr int64_t kMostFinalNs = 60'000'000'000;
constexpr double kMostReserved = 0.3;
constexpr double kThinkingShare = 0.08;  ///< of a session's time: proposing and training
constexpr int64_t kDrainNs = 2'000'000'000;
constexpr int64_t kSpaceNs = 2'000'000'000;  ///< between two looks at the disk
/// Each so many-th attempt may be run both on a part and whole; a batch of a task is no multiple.
constexpr int64_t kBothWays = 7;

/// What an attempt says in the log.
std::string MessageOf(const measure::MeasureResult& result, measure::Outcome outcome,
                      double median_ns) {
  if (outcome == measure::Outcome::kOk && result.part != 1) {
    return fmt::format("slower than the best on {:.2g} % of the work, which says {:.1f} us",
                       100 * result.part, median_ns * 1e-3);
  }
  return result.message.empty() && outcome != measure::Outcome::kOk
             ? std::string(measure::ToString(outcome))
             : result.message;
}
}  // namespace

void TuningSession::Answers::ApplyTo(Tuner& tuner) const {
  for (const Of& a : of) tuner.Result(a.attempt, a.outcome, a.median_ns, a.cost_seconds, a.part);
}

TuningSession::TuningSession(db::Database& database, measure::Measurer& measurer,
                             const MonotonicClock& clock, const WallClock& wall_clock,
                             SessionOptions options)
    : db_(database),
      measurer_(measurer),
      clock_(clock),
      wall_clock_(wall_clock),
      options_(std::move(options)) {}

int TuningSession::LocalOf(int place) const {
  const auto it = std::find(places_.begin(), places_.end(), place);
  HONE_CHECK(it != places_.end());
  return static_cast<int>(it - places_.begin());
}

double TuningSession::ElapsedSeconds() const {
  return earlier_seconds_ + options_.used_seconds +
         static_cast<double>(clock_.NowNs() - start_ns_) * 1e-9;
}

db::RecordKey TuningSession::KeyOf(int task) const {
  // Not of the Tuner, which another member may be using.
  const auto local = static_cast<size_t>(LocalOf(task));
  const int policy =
      options_.predicted ? kNotMeasured : ir::VersionsOf(options_.target.text).measurement_policy;
  return {hashes_[local], targets_[local], options_.device.device_class, options_.accuracy, policy};
}

db::Event TuningSession::MakeEvent(const SearchEvent& event) const {
  return StreamEvent(id_, event);
}

void TuningSession::AddProposed(const Tuner::Proposal& p, db::Batch& batch) {
  batch.events.push_back(StreamEvent(shared_->stream, Tuner::EventOf(p)));
  if (!shared()) return;
  ProposedEvent own = Tuner::EventOf(p);
  own.task = LocalOf(p.task);
  own.member = Tuner::kAlone;
  batch.events.push_back(MakeEvent(own));
}

measure::MeasureInput TuningSession::InputOf(const Tuner::Proposal& p,
                                             measure::MeasureKind kind) const {
  measure::MeasureInput in;
  in.id = p.attempt;
  in.workload = tuner_->task(p.task).workload;
  in.target = targets_[static_cast<size_t>(LocalOf(p.task))];
  in.trace = p.trace;
  in.kind = kind;
  in.accuracy = options_.accuracy;
  in.incumbent_ns = static_cast<int64_t>(tuner_->search(p.task).best_ns());
  in.seed = options_.seed;
  if (kind == measure::MeasureKind::kFinal) return in;
  const TaskSearch& s = tuner_->search(p.task);
  in.part_ns = s.parts().part_ns();
  in.part_ratio = s.parts().RatioOf(s.space().At(p.id).sketch);
  in.both_ways = p.id == s.space().DefaultId() ||
                 (p.attempt % kBothWays == 0 && s.parts().WantsBoth(s.trials()));
  return in;
}

double TuningSession::SecondsLeft() const {
  double left = std::numeric_limits<double>::infinity();
  if (options_.seconds > 0) left = options_.seconds - ElapsedSeconds();
  if (options_.until_unix_ns > 0) {
    const int64_t left_ns = options_.until_unix_ns - wall_clock_.UnixNs();
    left = std::min(left, static_cast<double>(left_ns) * 1e-9);
  }
  return left;
}

void TuningSession::ReserveFinal() {
  const double left = std::max(0.0, SecondsLeft());
  // However long the end takes, most of the time is for the search.
  reserve_seconds_ = std::min(options_.reserve_seconds, kMostReserved * left);
  if (options_.until_unix_ns == 0) return;
  final_ns_ = std::min(kMostFinalNs, static_cast<int64_t>(1e9 * kFinalShare * left)) +
              static_cast<int64_t>(1e9 * reserve_seconds_);
}

double TuningSession::SearchSeconds() const {
  return options_.seconds * (1 - kFinalShare) - reserve_seconds_;
}

bool TuningSession::DiskIsFull() {
  if (!options_.free_bytes) return false;
  const int64_t now_ns = clock_.NowNs();
  if (space_seen_ns_ != 0 && now_ns - space_seen_ns_ < kSpaceNs) return false;
  space_seen_ns_ = now_ns;
  return options_.free_bytes() < options_.least_free_bytes;
}

void TuningSession::TellSecondsLeft() {
  if (!options_.tell_seconds_left || options_.until_unix_ns == 0) return;
  told_left_ns_ = clock_.NowNs();
  options_.tell_seconds_left(SecondsLeft());
}

bool TuningSession::OutOfBudget() {
  if (clock_.NowNs() - told_left_ns_ >= kTellNs) TellSecondsLeft();
  if (Interrupted())
    reason_ = StopReason::kInterrupted;
  else if (DiskIsFull())
    reason_ = StopReason::kDiskFull;
  else if (options_.seconds > 0 && ElapsedSeconds() >= SearchSeconds())
    reason_ = StopReason::kTime;
  else if (options_.until_unix_ns > 0 && wall_clock_.UnixNs() >= options_.until_unix_ns - final_ns_)
    reason_ = StopReason::kDate;
  return reason_ != StopReason::kNone;
}

int TuningSession::MostInFlight() const {
  const int capacity = measurer_.capacity();
  // What a farm's workers hold is their buffer; what waits beyond was chosen knowing less.
  return options_.begin_results ? capacity + std::max(capacity / 4, 1) : 2 * capacity;
}

absl::StatusOr<bool> TuningSession::SubmitRound() {
  const auto in_flight = static_cast<int>(measurer_.num_in_flight());
  const int room = std::min(MostInFlight() - in_flight, kMostProposed);
  if (room <= 0) return true;
  const auto lock = Lock();
  std::vector<Tuner::Proposal> proposals;
  measurer_.WhileNotTiming([&] {
    const int64_t start_ns = clock_.NowNs();
    proposals = tuner_->Propose(room, member_);
    thinking_ns_ += clock_.NowNs() - start_ns;
  });
  dry_ = tuner_->reason();
  db::Batch batch;
  batch.events.push_back(MakeEvent(ElapsedEvent{ElapsedSeconds()}));
  const size_t before = batch.events.size();
  TellFound(batch);
  if (proposals.empty() && batch.events.size() == before) return false;
  for (const auto& p : proposals) AddProposed(p, batch);
  HONE_RETURN_IF_ERROR(db_.Append(batch).status());
  SubmitAll(proposals);
  return !proposals.empty();
}

void TuningSession::SubmitAll(const std::vector<Tuner::Proposal>& proposals) {
  for (const auto& p : proposals) {
    measure::MeasureInput input = InputOf(p, measure::MeasureKind::kScreen);
    // Together: nobody shall find one under way that the Measurer does not know of.
    const std::lock_guard flight(flight_mutex_);
    in_flight_[p.attempt] = p;
    measurer_.Submit(std::move(input));
  }
  flight_changed_.notify_all();
}

db::TuningRecord TuningSession::MakeRecord(int task, const std::string& trace,
                                           const std::vector<int64_t>& samples, db::Rigor rigor,
                                           bool noisy) {
  db::TuningRecord r;
  r.id = FactId();
  r.key = KeyOf(task);
  r.device = db::DeviceId(options_.device);
  r.trace = trace;
  r.trace_version = kTraceTextVersion;
  r.builder_version = options_.builder_version;
  r.rigor = rigor;
  const MedianInterval m = IntervalOf(samples);
  r.median_ns = m.median;
  r.low_ns = m.low;
  r.high_ns = m.high;
  r.noisy = noisy;
  r.session = id_;
  r.seed = options_.seed;
  r.created_ms = wall_clock_.UnixNs() / 1'000'000;
  r.samples_ns.assign(samples.begin(), samples.end());
  return r;
}

absl::Status TuningSession::CommitResults(const db::Batch& batch) {
  return options_.commit_results ? options_.commit_results(batch) : db_.Append(batch).status();
}

absl::StatusOr<TuningSession::Answers> TuningSession::AnswersOf(
    const std::vector<measure::MeasureResult>& results) {
  Answers answers;
  db::Batch& batch = answers.batch;
  for (const auto& r : results) {
    Tuner::Proposal p;
    {
      const std::lock_guard flight(flight_mutex_);
      const auto it = in_flight_.find(r.id);
      if (it == in_flight_.end()) continue;
      HONE_RETURN_IF_ERROR(CheckLost(r));
      p = std::move(it->second);
      in_flight_.erase(it);
    }
    measure::Outcome outcome = r.outcome;
    if (outcome == measure::Outcome::kOk && r.samples_ns.empty() && !options_.predicted)
      outcome = measure::Outcome::kRunCrashed;
    double median = outcome == measure::Outcome::kOk ? IntervalOf(r.samples_ns).median : 0;
    if (outcome == measure::Outcome::kOk && options_.predicted) {
      const auto lock = Lock();
      median = tuner_->search(p.task).PredictedNs(p.id);
    }
    const double cost = (r.build_ms + r.run_ms) * 1e-3;
    db::Attempt a;
    a.id = FactId();
    a.session = id_;
    a.key = KeyOf(p.task);
    a.device = db::DeviceId(options_.device);
    a.trace = p.trace;
    a.proposer = std::string(ProposerName(p.proposer));
    a.outcome = outcome;
    a.message = MessageOf(r, outcome, median);
    a.cost_ns = static_cast<int64_t>(cost * 1e9);
    a.created_ms = wall_clock_.UnixNs() / 1'000'000;
    const bool whole = r.part == 1;
    // A part makes no record: the latency of the whole is not known, nor whether it is right.
    if (outcome == measure::Outcome::kOk && whole) {
      const std::lock_guard flight(flight_mutex_);
      Told& told = told_[static_cast<size_t>(LocalOf(p.task))];
      if (p.proposer == Proposer::kDefault) told.default_ns = median;
      told.best_ns = told.best_ns > 0 ? std::min(told.best_ns, median) : median;
      db::TuningRecord record =
          options_.predicted
              ? MakeRecord(p.task, p.trace, {}, db::Rigor::kPredicted)
              : MakeRecord(p.task, p.trace, r.samples_ns, db::Rigor::kScreened, r.noisy);
      if (options_.predicted) record.median_ns = record.low_ns = record.high_ns = median;
      batch.records.push_back(std::move(record));
      a.record = batch.records.back().id;
    } else if (outcome != measure::Outcome::kOk) {
      failures_[outcome]++;
    }
    batch.values.push_back(
        {a.key.workload, a.key.target, db::TraceHash(a.trace), std::move(p.values)});
    batch.attempts.push_back(std::move(a));
    const auto part_ns = static_cast<double>(r.part_ns);
    const ResultEvent event{p.attempt, outcome, median, cost, part_ns, r.part};
    batch.events.push_back(StreamEvent(shared_->stream, event));
    if (shared()) batch.events.push_back(MakeEvent(event));
    answers.of.push_back({p.attempt, outcome, median, cost, {part_ns, whole}});
  }
  // Where batches are many and small, not each one needs the time.
  const double now_seconds = ElapsedSeconds();
  if (!answers.of.empty() && (!shared() || now_seconds >= told_seconds_ + kTellSeconds)) {
    told_seconds_ = now_seconds;
    batch.events.push_back(MakeEvent(ElapsedEvent{now_seconds}));
  }
  return answers;
}

absl::Status TuningSession::TakeResults(const std::vector<measure::MeasureResult>& results) {
  HONE_ASSIGN_OR_RETURN(Answers answers, AnswersOf(results));
  if (answers.of.empty()) return absl::OkStatus();
  if (options_.begin_results) {
    BeginResults(std::move(answers));
    return absl::OkStatus();
  }
  // Durable first: what the Tuner acts on, a restart knows too.
  const auto lock = Lock();
  HONE_RETURN_IF_ERROR(CommitResults(answers.batch));
  answers.ApplyTo(*tuner_);
  return absl::OkStatus();
}

absl::Status TuningSession::CheckLost(const measure::MeasureResult& result) {
  lost_in_a_row_ = result.outcome == measure::Outcome::kWorkerLost ? lost_in_a_row_ + 1 : 0;
  if (lost_in_a_row_ < std::max(32, 4 * measurer_.capacity())) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("the last {} candidates could not be measured at all: {}; what was measured "
                  "before stands in the log, and the same command goes on from there",
                  lost_in_a_row_, result.message));
}

absl::Status TuningSession::Train() {
  // From predictions trees would learn the analytic model.
  if (options_.predicted || !options_.train) return absl::OkStatus();
  int64_t rows = 0;
  std::vector<costmodel::TrainingTask> training;
  {
    const auto lock = Lock();
    rows = tuner_->training_rows();
    const int64_t before = shared_->rows_at_training;
    // On a farm rows come by the thousand: ranking everything anew for a few more is worth nothing.
    const int64_t step = shared() ? std::max(kRowsPerModel, before / kGrowth) : kRowsPerModel;
    if (shared_->training || rows < kFirstModelRows || rows < before + step)
      return absl::OkStatus();
    // Training, and ranking anew what a new model ranks, is worth a share of the time, not more.
    if (before > 0 && static_cast<double>(thinking_ns_ + last_training_ns_) * 1e-9 >
                          kThinkingShare * ElapsedSeconds())
      return absl::OkStatus();
    shared_->rows_at_training = rows;
    shared_->training = true;
    training = tuner_->TrainingRows();
  }
  absl::StatusOr<std::string> bytes;
  absl::StatusOr<std::unique_ptr<costmodel::XgboostModel>> model;
  measurer_.WhileNotTiming([&] {
    const int64_t start_ns = clock_.NowNs();
    bytes = costmodel::XgboostModel::Train(training, options_.seed, options_.target.text);
    if (bytes.ok()) model = costmodel::XgboostModel::Load(*bytes, options_.target.text);
    last_training_ns_ = clock_.NowNs() - start_ns;
  });
  thinking_ns_ += last_training_ns_;
  if (!bytes.ok() || !model.ok()) {
    const auto lock = Lock();
    shared_->training = false;
    // Without a model the analytic one goes on ranking.
    return absl::OkStatus();
  }
  db::Batch batch;
  // Before the lock: while it is held nobody's results are taken.
  batch.blobs.push_back({Sha256Hex(*bytes), *std::move(bytes)});
  batch.events.push_back(StreamEvent(shared_->stream, ModelEvent{batch.blobs[0].digest, rows}));
  return PutModel(std::move(batch), *std::move(model));
}

absl::Status TuningSession::PutModel(db::Batch batch,
                                     std::shared_ptr<const costmodel::XgboostModel> model) {
  if (options_.begin_append) {
    BeginModel(std::move(batch), std::move(model));
    const auto lock = Lock();
    shared_->training = false;
    return absl::OkStatus();
  }
  const auto lock = Lock();
  shared_->training = false;
  HONE_RETURN_IF_ERROR(db_.Append(batch).status());
  tuner_->SetModel(std::move(model));
  return absl::OkStatus();
}

absl::Status TuningSession::GiveUpLost() {
  // An interrupted session waits for nothing; a restarted one does.
  if (Interrupted()) return absl::OkStatus();
  std::vector<measure::MeasureResult> lost;
  {
    const std::lock_guard flight(flight_mutex_);
    if (measurer_.num_in_flight() > 0) return absl::OkStatus();  // submitted meanwhile
    for (const auto& [attempt, p] : in_flight_) {
      measure::MeasureResult r;
      r.id = attempt;
      r.outcome = measure::Outcome::kWorkerLost;
      r.message = "no result came back";
      lost.push_back(std::move(r));
    }
  }
  if (lost.empty()) return absl::OkStatus();
  // They were lost at any time since they were submitted, not in a row: together they count once.
  lost_in_a_row_ -= static_cast<int64_t>(lost.size()) - 1;
  return TakeResults(lost);
}

bool TuningSession::OthersAtWork() {
  if (!shared() || dry_ == StopReason::kTrials) return false;
  const auto lock = Lock();
  return std::any_of(places_.begin(), places_.end(),
                     [this](int i) { return tuner_->open_of(i) > 0; });
}

bool TuningSession::NothingUnderWay() {
  const std::lock_guard flight(flight_mutex_);
  return measurer_.num_in_flight() == 0 && in_flight_.empty() && begun_->unsettled() == 0;
}

absl::Status TuningSession::SearchAlone(const std::function<void(const TuningSession&)>& progress) {
  while (!OutOfBudget()) {
    HONE_RETURN_IF_ERROR(SubmitRound().status());
    if (NothingUnderWay()) {
      if (!OthersAtWork()) {
        reason_ = dry_;
        break;
      }
      clock_.SleepNs(kOthersNs);
      continue;
    }
    std::vector<measure::MeasureResult> results = measurer_.Collect(kCollectNs);
    if (results.empty() && measurer_.num_in_flight() == 0) HONE_RETURN_IF_ERROR(GiveUpLost());
    HONE_RETURN_IF_ERROR(TakeResults(results));
    HONE_RETURN_IF_ERROR(Train());
    if (progress) progress(*this);
  }
  return absl::OkStatus();
}

absl::Status TuningSession::Run(const std::function<void(const TuningSession&)>& progress) {
  HONE_RETURN_IF_ERROR(options_.begin_results ? SearchBeside(progress) : SearchAlone(progress));
  // What is being measured just now is finished, so that it is not lost; what waits is not begun.
  measurer_.DropWaiting();
  const int64_t drain_until_ns = clock_.NowNs() + kDrainNs;
  while (measurer_.num_in_flight() > 0 && clock_.NowNs() < drain_until_ns) {
    HONE_RETURN_IF_ERROR(TakeResults(measurer_.Collect(kCollectNs)));
  }
  // What is left of a full disk is for the end of the record.
  const bool full = reason_ == StopReason::kDiskFull;
  if (!full && !Interrupted() && !options_.predicted) HONE_RETURN_IF_ERROR(FinalComparisons());
  if (!full && !Interrupted() && options_.before_end)
    HONE_RETURN_IF_ERROR(options_.before_end(*this));
  // Once: what is interrupted from here on has finished, and leaves.
  if (Interrupted()) reason_ = StopReason::kInterrupted;
  if (progress) progress(*this);
  const auto all = shared_->LockAll();
  HONE_RETURN_IF_ERROR(begun_->status());
  db::Batch batch;
  batch.events.push_back(MakeEvent(ElapsedEvent{ElapsedSeconds()}));
  const bool goes_on = full || reason_ == StopReason::kInterrupted;
  if (!goes_on) TellFound(batch);
  std::string why(StopReasonName(reason_));
  batch.events.push_back(goes_on ? MakeEvent(InterruptedEvent{std::move(why)})
                                 : MakeEvent(FinishedEvent{std::move(why)}));
  if (shared() && !goes_on) TakeOut(*shared_, member_, batch);
  return db_.Append(batch).status();
}

}  // namespace hone::search
