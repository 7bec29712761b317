#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/core/check.h"
#include "base/core/random_id.h"
#include "base/status.h"
#include "db/lookup.h"
#include "db/prediction.h"
#include "ir/narrow_target.h"
#include "ir/text.h"
#include "search/transplant.h"
#include "search/tuning_session.h"

// How a session begins: alone or as a member, anew or where the log stands.
namespace hone::search {

namespace {
constexpr int kNearRecords = 3;  ///< transplanted into a task before it starts
constexpr double kWarmStartShare = 0.03;
constexpr double kWarmStartSeconds = 5;  ///< without a limit in time
/// The analytic model ranks the whole Space: what comes later is there for what cannot be built.
constexpr int kPredictedStale = 8;
}  // namespace

absl::Status TuningSession::FindUnfinished() {
  HONE_ASSIGN_OR_RETURN(std::vector<db::StoredSession> sessions, db_.Sessions());
  for (auto it = sessions.rbegin(); it != sessions.rend(); ++it) {
    if (it->merged || it->session.request != options_.request) continue;
    HONE_ASSIGN_OR_RETURN(std::vector<db::Event> events, db_.EventsOf(it->session.id));
    if (!events.empty() && events.back().type == FinishedEvent::kType) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(resumed_, ReplayEvents(events));
    if (!resumed_) return absl::OkStatus();
    id_ = it->session.id;
    return RestoreCompared();
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TuningSession::ReplayEvents(const std::vector<db::Event>& events) {
  // Another model under the same name, or Spaces of another Hone: ids mean something else there.
  const auto joined = events.empty() ? std::nullopt : EventAs<JoinEvent>(events[0]);
  if (!joined || joined->of != tuner_->Fingerprint()) return false;
  HONE_RETURN_IF_ERROR(ReplayStream(db_, events, *shared_));
  for (const db::Event& e : events) {
    HONE_ASSIGN_OR_RETURN(const SearchEvent event, ParseEvent(e));
    HONE_RETURN_IF_ERROR(ReplayOwn(event));
  }
  return true;
}

absl::Status TuningSession::ReplayOwn(const SearchEvent& event) {
  if (const auto* const elapsed = std::get_if<ElapsedEvent>(&event)) {
    earlier_seconds_ = std::max(earlier_seconds_, elapsed->seconds);
  } else if (const auto* const result = std::get_if<ResultEvent>(&event)) {
    if (result->outcome != measure::Outcome::kOk) ++failures_[result->outcome];
  } else if (const auto* const verdict = std::get_if<VerdictEvent>(&event)) {
    return ReplayVerdict(*verdict);
  }
  return absl::OkStatus();
}

std::optional<uint64_t> TuningSession::Transplant(int task, const db::NearCandidate& near) const {
  const schedule::Space& space = tuner_->search(task).space();
  const std::optional<int> other = tuner_->TaskOf(near.workload.hash);
  if (!other) return TransplantPoint(near, space);
  const auto from = tuner_->search(*other).space().Locate(near.record.record.trace);
  return from ? space.Nearest(tuner_->search(*other).space(), *from) : std::nullopt;
}

absl::StatusOr<std::vector<TuningSession::Known>> TuningSession::WarmStart(db::Batch& batch) {
  std::vector<Known> all;
  db::Lookup lookup(db_, options_.builder_version);
  const double left = SecondsLeft();
  const double most_seconds = std::isfinite(left) ? kWarmStartShare * left : kWarmStartSeconds;
  for (const int i : places_) {
    TaskSearch& s = tuner_->search(i);
    if (s.proposed() > 0) continue;  // another member's, warm already
    std::vector<uint64_t> found;
    const db::RecordQuery query{KeyOf(i), options_.builder_version};
    HONE_ASSIGN_OR_RETURN(auto records, db_.TopRecords(query, 2));
    if (!options_.predicted) {
      // Candidates like others: nothing of them counts but their Traces.
      const db::RecordQuery predicted{db::PredictedKey(query.key), query.builder_version};
      HONE_ASSIGN_OR_RETURN(const auto best, db_.TopRecords(predicted, 2));
      records.insert(records.end(), best.begin(), best.end());
    }
    HONE_ASSIGN_OR_RETURN(auto others, db_.SameIsaRecords(query));
    if (others.size() > 2) others.resize(2);
    records.insert(records.end(), others.begin(), others.end());
    for (const auto& r : records) {
      if (const auto id = s.space().Locate(r.record.trace)) found.push_back(*id);
    }
    HONE_ASSIGN_OR_RETURN(const auto near,
                          lookup.Nearest(query.key, ir::ToText(*tuner_->task(i).workload)));
    for (size_t k = 0; k < near.size() && k < kNearRecords; ++k) {
      // Spaces of other Workloads are made for this alone: for so long and no longer.
      const bool in_time = static_cast<double>(clock_.NowNs() - start_ns_) * 1e-9 < most_seconds;
      const auto id =
          in_time || tuner_->TaskOf(near[k].workload.hash) ? Transplant(i, near[k]) : std::nullopt;
      if (id) found.push_back(*id);
    }
    for (uint64_t id : found) {
      all.push_back({i, id});
      batch.events.push_back(StreamEvent(shared_->stream, ImportedEvent{i, id}));
    }
  }
  return all;
}

absl::Status TuningSession::BeginWarm(db::Batch batch) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Known> known, WarmStart(batch));
  HONE_RETURN_IF_ERROR(db_.Append(batch).status());
  for (const Known& k : known) tuner_->Import(k.task, k.id);
  return absl::OkStatus();
}

absl::Status TuningSession::Start(std::vector<TuningTask> tasks) {
  start_ns_ = clock_.NowNs();
  ReserveFinal();
  db::Batch batch;
  for (const auto& t : tasks) {
    const std::string text = ir::ToText(*t.workload);
    int64_t bytes = 0;
    for (const auto& x : t.workload->tensors) {
      if (x.kind != ir::TensorKind::kStage || x.output) bytes += x.Bytes();
    }
    batch.workloads.push_back({t.hash, text, static_cast<int64_t>(t.flop), bytes});
  }
  verdicts_.resize(tasks.size());
  told_.resize(tasks.size());
  std::vector<const ir::Workload*> workloads;
  for (const TuningTask& t : tasks) {
    hashes_.push_back(t.hash);
    targets_.push_back(ir::NarrowedTo(options_.target, *t.workload).text);
    workloads.push_back(t.workload.get());
  }
  options_.target = ir::NarrowedTo(options_.target, workloads);
  model_ = ModelHashOf(tasks);
  if (shared()) {
    HONE_RETURN_IF_ERROR(JoinShared(std::move(tasks), std::move(batch)));
  } else {
    HONE_RETURN_IF_ERROR(BeginAlone(std::move(tasks), std::move(batch)));
  }
  HONE_RETURN_IF_ERROR(Train());
  // What was proposed but never answered is measured now; it was charged already.
  const auto lock = Lock();
  std::vector<Tuner::Proposal> open = tuner_->Open();
  std::erase_if(open, [this](const Tuner::Proposal& p) { return p.member != member_; });
  SubmitAll(open);
  return absl::OkStatus();
}

absl::Status TuningSession::BeginAlone(std::vector<TuningTask> tasks, db::Batch batch) {
  shared_ = std::make_shared<SharedTuner>(
      options_.target, TunerOptions{options_.seed, options_.trials, options_.accuracy,
                                    options_.predicted ? kPredictedStale : TaskSearch::kMinStale,
                                    options_.evolve});
  tuner_ = &shared_->tuner;
  places_ = tuner_->Join({.member = member_,
                          .trials = options_.trials,
                          .seed = options_.seed,
                          .tasks = std::move(tasks)});
  HONE_RETURN_IF_ERROR(FindUnfinished());
  if (!resumed_) id_ = options_.id == Hash128{} ? RandomId() : options_.id;
  shared_->stream = id_;
  if (resumed_) return absl::OkStatus();
  AddSessionTo(batch, {tuner_->Fingerprint()});
  return BeginWarm(std::move(batch));
}

void TuningSession::AddSessionTo(db::Batch& batch, const JoinEvent& first_event) {
  db::Session s;
  s.id = id_;
  s.request = options_.request;
  s.seed = options_.seed;
  s.versions = options_.versions;
  s.created_ms = wall_clock_.UnixNs() / 1'000'000;
  batch.sessions.push_back(std::move(s));
  batch.devices.push_back(options_.device);
  batch.events.push_back(MakeEvent(first_event));
}

absl::Status TuningSession::ReplayMembership() {
  HONE_ASSIGN_OR_RETURN(const std::vector<db::Event> events, db_.EventsOf(id_));
  for (const db::Event& e : events) {
    HONE_ASSIGN_OR_RETURN(const SearchEvent event, ParseEvent(e));
    HONE_RETURN_IF_ERROR(ReplayOwn(event));
    // What had no answer gets none in a search that has begun anew.
    const auto* const result = std::get_if<ResultEvent>(&event);
    if (result != nullptr && result->outcome != measure::Outcome::kWorkerLost) ++earlier_charged_;
    // Where the search of before cannot go on, its numbers are not used again.
    if (const auto* const proposed = std::get_if<ProposedEvent>(&event))
      options_.first_attempt = std::max(options_.first_attempt, proposed->attempt + 1);
  }
  return absl::OkStatus();
}

absl::Status TuningSession::MakeSpaces(std::vector<TuningTask>& tasks) {
  std::vector<TuningTask*> missing;
  {
    const auto lock = Lock();
    for (TuningTask& task : tasks) {
      if (!task.space && !shared_->tuner.TaskOf(task.hash)) missing.push_back(&task);
    }
  }
  for (TuningTask* task : missing) {
    if (Interrupted()) return absl::CancelledError("interrupted");
    task->space = shared_->tuner.MakeSpace(*task);
  }
  return absl::OkStatus();
}

absl::Status TuningSession::JoinShared(std::vector<TuningTask> tasks, db::Batch batch) {
  HONE_CHECK(options_.id != Hash128{}) << "a member of a shared search has an id";
  id_ = member_ = options_.id;
  HONE_ASSIGN_OR_RETURN(const auto known, db_.FindSession(id_));
  resumed_ = known.has_value();
  if (resumed_) HONE_RETURN_IF_ERROR(ReplayMembership());
  for (;;) {
    HONE_ASSIGN_OR_RETURN(shared_, options_.join());
    HONE_RETURN_IF_ERROR(MakeSpaces(tasks));
    const auto lock = Lock();
    if (shared_->over) continue;
    tuner_ = &shared_->tuner;
    if (!resumed_) AddSessionTo(batch, {shared_->stream.ToHex()});
    if (tuner_->HasMember(member_)) {
      places_ = tuner_->TasksOf(member_);
      if (places_.size() != tasks.size())
        return absl::DataLossError("the log's search has other tasks for this session");
      TellFound(batch);
      return db_.Append(batch).status();
    }
    places_ = tuner_->Join({.member = member_,
                            .trials = options_.trials,
                            .seed = options_.seed,
                            .first_attempt = options_.first_attempt,
                            .charged = earlier_charged_,
                            .tasks = std::move(tasks)});
    batch.events.push_back(StreamEvent(shared_->stream, tuner_->EventOf(member_)));
    TellFound(batch);
    absl::Status begun = BeginWarm(std::move(batch));
    // The other members go on, with the numbers of tasks that the log gives them.
    if (!begun.ok()) tuner_->UndoJoin(member_);
    return begun;
  }
}

}  // namespace hone::search
