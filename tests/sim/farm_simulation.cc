#include "tests/sim/farm_simulation.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "base/core/check.h"
#include "base/status.h"
#include "db/sqlite_migrate.h"
#include "db/sqlite_open.h"
#include "ir/text.h"
#include "tests/search/fake_measurer.h"

namespace hone::sim {
namespace {

using measure::Outcome;
using search::Tuner;

constexpr int64_t kMs = 1'000'000;
constexpr char kPath[] = "/sim/tune.db";

class Reader final : public server::LeaseReader {
 public:
  explicit Reader(db::FarmStore& store) : store_(store) {}
  std::optional<db::FarmLease> FindLease(const Hash128& token) override {
    auto lease = store_.FindLease(token);
    return lease.ok() ? *std::move(lease) : std::nullopt;  // the power is off
  }

 private:
  db::FarmStore& store_;
};

server::FarmPolicy Policy() {
  server::FarmPolicy policy;
  policy.start_by_ns = 8'000 * kMs;
  policy.run_by_ns = 6'000 * kMs;
  policy.grace_ns = 1'000 * kMs;
  policy.heartbeat_ns = 200 * kMs;
  policy.lost_after_ns = 3'000 * kMs;
  policy.first_pause_ns = 50 * kMs;
  policy.max_faults = 1;
  policy.doubt_ns = 2'000 * kMs;
  policy.artifact_cache_bytes = 14 * 560;
  policy.chunk_bytes = 8;
  return policy;
}

}  // namespace

FarmSimulation::FarmSimulation(const SimulationOptions& options)
    : options_(options), random_(options.seed), stream_id_(HashBytes("search")) {
  HONE_CHECK(db::FillNewLog(kPath, db::kMigrations).ok());
  OpenLog();
  tasks_ = search::TwoTasks();
  tasks_.erase(tasks_.begin() + 1, tasks_.end());
  tasks_.push_back(search::TallerProduct());
  db::FarmUnit unit;
  for (const search::TuningTask& t : tasks_) {
    unit.facts.workloads.push_back({t.hash, ir::ToText(*t.workload), 1, 1});
  }
  db::Session row;
  row.id = stream_id_;
  row.request = row.versions = "{}";
  unit.facts.sessions.push_back(row);
  int deadlines = 0;
  for (int i = 0; i < options.sessions; ++i) {
    SimSession& s = sessions_.emplace_back();
    s.project = fmt::format("project {}", i);
    SimClient& client = clients_.emplace_back();
    client.ask_ns = i == 0 ? 0 : random_.Between(0, 400) * kMs;
    // The first one always has the time for all its trials, and the poisonous one among them.
    if (i > 0 && random_.Chance(0.5)) {
      s.deadline_ns = random_.Between(600, 5'000) * kMs;
      ++deadlines;
    }
  }
  HONE_CHECK(store_->Commit({&unit}).ok());
  const auto add = [&](int count, const char* name, proto::WorkerRole role) {
    for (int i = 0; i < count; ++i) {
      SimWorker& w = workers_.emplace_back();
      w.name = fmt::format("{}{}", name, i);
      w.role = role;
      CrashWorker(w);
    }
  };
  add(options.workers, "w", proto::WorkerRole::kBoth);
  add(options.builders, "b", proto::WorkerRole::kBuild);
  add(options.runners, "r", proto::WorkerRole::kRun);
  counts_ = {};
  counts_.deadlines = deadlines;
  StartHoned();
}

FarmSimulation::~FarmSimulation() = default;

int64_t FarmSimulation::FarmNs() const {
  return options_.mistake == Mistake::kWallClockLeases ? wall_ns_ : now_ns_;
}

void FarmSimulation::OpenLog() {
  auto log = db::OpenWriter(kPath, std::nullopt, true);
  if (!log.ok()) {
    wrong_ = fmt::format("the log cannot be opened again: {}", StatusMessage(log.status()));
    return;
  }
  if (options_.mistake == Mistake::kLowSynchronous) {
    HONE_CHECK((*log)->connection().Execute("PRAGMA synchronous = OFF").ok());
  }
  log_ = *std::move(log);
  store_ = db::FarmStore::Open(*log_).value();
}

void FarmSimulation::ReplaySearch() {
  search_ = std::make_unique<search::SharedTuner>(search::TestTarget(),
                                                  search::TunerOptions{.seed = options_.seed});
  std::vector<db::Event> events = log_->EventsOf(stream_id_).value();
  if (options_.mistake == Mistake::kForgetEvents && !events.empty()) events.pop_back();
  const absl::Status replayed = search::ReplayStream(*log_, events, *search_);
  if (!replayed.ok()) wrong_ = fmt::format("the events: {}", StatusMessage(replayed));
}

void FarmSimulation::StartHoned() {
  const uint64_t start =
      options_.mistake == Mistake::kReuseStart ? 1 : HashBytes(std::to_string(++starts_)).high;
  reader_ = std::make_unique<Reader>(*store_);
  farm_ = std::make_unique<server::Farm>(
      Policy(), server::Farm::Versions{.protocol = 1, .builder = "b"}, start, *reader_);
  db::FarmState state = store_->Load().value();
  // Also the suspects of a commit that a power cut met.
  for (const db::FarmSuspect& suspect : state.suspects) losses_[suspect.attempt] = suspect.losses;
  if (options_.mistake == Mistake::kForgetOpenLeases) state.leases.clear();
  if (options_.mistake == Mistake::kForgetSuspects) state.suspects.clear();
  if (options_.mistake == Mistake::kForgetStarted) {
    for (db::FarmLease& lease : state.leases) lease.state = db::LeaseState::kGranted;
  }
  RestoreActs(state);
  farm_->Restore(state, FarmNs());
  held_.clear();
  gone_.clear();
  search_busy_ = false;
  ReplaySearch();
  if (!wrong_.empty()) return;
  for (size_t i = 0; i < sessions_.size(); ++i) {
    SimSession& s = sessions_[i];
    s.in_flight.clear();
    s.collected.clear();
    s.to_ask.clear();
    s.comparing = false;
    s.verdict.reset();
    for (const db::FarmSession& row : state.sessions) {
      if (row.project == s.project) Accepted(i, row.id);
    }
    if (!s.created) continue;
    s.ended = std::ranges::none_of(state.sessions, [&](const auto& row) { return row.id == s.id; });
    s.member = search_->tuner.HasMember(s.id);
    if (s.ended) continue;
    farm_->BeginSession(
        {.id = s.id, .project = s.project, .target = kTarget, .device_class = "class"});
    if (options_.mistake != Mistake::kForgetDeadline) SetDeadline(s);
    // What was proposed and not answered is asked for again.
    const std::vector<Tuner::Proposal> open = search_->tuner.Open();
    for (const Tuner::Proposal& p : open) {
      if (p.member != s.id) continue;
      s.in_flight[p.attempt] = p;
      s.to_ask.push_back(p);
    }
    s.compared = !store_->AnswersFrom(s.id, kFirstComparison).value().empty();
    s.asks_ns = now_ns_ + (options_.doubts ? random_.Between(0, 800) * kMs : 0);
    if (!options_.doubts) HasReplayed(s);
  }
}

void FarmSimulation::CompareWithRestarted(search::SharedTuner& before) {
  search::SharedTuner again(search::TestTarget(), {.seed = options_.seed});
  HONE_CHECK(search::ReplayStream(*log_, log_->EventsOf(stream_id_).value(), again).ok());
  ++counts_.compared_restarts;
  counts_.shared += before.tuner.Members().size() > 1 ? 1 : 0;
  search::SharedTuner& after = options_.mistake == Mistake::kForgetEvents ? *search_ : again;
  if (before.tuner.Members() != after.tuner.Members()) wrong_ = "a restart has other members";
  const std::vector<Hash128> members = before.tuner.Members();
  for (const Hash128& member : members) {
    const auto a = before.tuner.Propose(3, member);
    const auto b = after.tuner.Propose(3, member);
    bool equal = a.size() == b.size();
    for (size_t i = 0; equal && i < a.size(); ++i) {
      equal = Tuner::EventOf(a[i]) == Tuner::EventOf(b[i]);
    }
    if (!equal) wrong_ = "after a restart other candidates are proposed";
  }
}

void FarmSimulation::CrashHoned(bool power) {
  const server::FarmCounters& c = farm_->counters();
  counts_.farm.granted += c.granted;
  counts_.farm.duplicates += c.duplicates;
  counts_.farm.stale += c.stale;
  counts_.farm.conflicts += c.conflicts;
  counts_.farm.expired += c.expired;
  counts_.farm.lost += c.lost;
  counts_.farm.condemned += c.condemned;
  counts_.farm.held_back += c.held_back;
  counts_.farm.quarantined += c.quarantined;
  counts_.farm.invalid += c.invalid;
  counts_.farm.artifacts += c.artifacts;
  counts_.farm.artifacts_refused += c.artifacts_refused;
  counts_.farm.artifacts_gone += c.artifacts_gone;
  counts_.farm.artifacts_unasked += c.artifacts_unasked;
  ++(power ? counts_.power_cuts : counts_.restarts);
  for (SimWorker& w : workers_) Break(w);
  // What was not committed is gone; so is what was, but not sent.
  const std::unique_ptr<search::SharedTuner> before = std::move(search_);
  const bool comparable = !search_busy_;
  disk_.CutNow();
  store_.reset();
  log_.reset();
  if (power) {
    disk_.PowerOn(random_);
  } else {
    disk_.ProcessEnded();
  }
  disk_.SetFull(false);
  full_until_ns_ = 0;
  if (blocked_since_ns_ >= 0) blocked_ns_ += now_ns_ - blocked_since_ns_;
  blocked_since_ns_ = -1;
  unblocked_ns_ = now_ns_;
  EndPause();
  OpenLog();
  if (!wrong_.empty()) return;
  StartHoned();
  if (wrong_.empty() && comparable && random_.Chance(0.5)) CompareWithRestarted(*before);
}

void FarmSimulation::Gather(Held held) {
  held.step = farm_->Take();
  CheckTime(held.step);
  for (db::FarmChange& change : held.step.changes) held.unit.changes.push_back(std::move(change));
  held.step.changes.clear();
  search_busy_ |= held.session != nullptr;
  if (options_.mistake == Mistake::kSendBeforeCommit) {
    Release(std::exchange(held.step, {}));
    for (const auto& [attempt, result] : held.results) {
      farm_->OnCommitted(held.session->id, {attempt}, FarmNs());
    }
    const server::FarmStep early = farm_->Take();
    for (const db::FarmChange& change : early.changes) held.unit.changes.push_back(change);
    Release(early);
  }
  held_.push_back(std::move(held));
}

void FarmSimulation::TakeResult(const server::Delivery& delivery) {
  for (SimSession& s : sessions_) {
    if (s.id != delivery.session || s.ended) continue;
    CheckBelief(delivery);
    if (delivery.attempt >= kFirstComparison) {
      TakeVerdict(s, delivery.result);
      continue;
    }
    if (!s.in_flight.contains(delivery.attempt)) wrong_ = "a result of what was not asked for";
    if (!s.collected.try_emplace(delivery.attempt, delivery.result).second) {
      wrong_ = fmt::format("attempt {} was delivered twice", delivery.attempt);
    }
  }
}

void FarmSimulation::Release(const server::FarmStep& step) {
  for (const server::Outgoing& out : step.messages) {
    if (const auto* grant = std::get_if<proto::Grant>(&out.message)) {
      const auto job = std::pair{grant->session, grant->attempt};
      if (asked_.try_emplace(grant->token, job).first->second != job) {
        wrong_ = "one token for two attempts";
      }
    }
    for (SimWorker& w : workers_) {
      if (w.stream != out.stream) continue;
      if (std::holds_alternative<proto::Grant>(out.message)) CheckGrant(w);
      const int64_t last_ns = w.to_worker.empty() ? now_ns_ : w.to_worker.back().first;
      w.to_worker.emplace_back(std::max(last_ns, now_ns_ + Delay()), out.message);
      auto* grant = std::get_if<proto::Grant>(&w.to_worker.back().second);
      if (options_.mistake == Mistake::kSwapArtifacts && grant != nullptr &&
          !grant->artifacts.empty()) {
        grant->artifacts.front() = grant->artifacts.back();
      }
      if (grant != nullptr && options_.mistake == Mistake::kWorkerClock) {
        const int64_t ahead_ms = -w.clock_offset_ns / kMs;
        grant->start_by_ms = std::max<int64_t>(1, grant->start_by_ms + ahead_ms);
      }
    }
  }
  for (const server::Closing& closing : step.closings) {
    for (SimWorker& w : workers_) {
      std::erase_if(w.ghosts, [&](const auto& ghost) { return ghost.first == closing.stream; });
      if (w.stream != closing.stream) continue;
      if (Cut(w)) {
        w.closed = true;
      } else {
        Break(w);
      }
    }
  }
  for (const server::Delivery& delivery : step.deliveries) TakeResult(delivery);
}

void FarmSimulation::CommitAll() {
  std::vector<const db::FarmUnit*> units;
  for (const Held& h : held_) {
    if (!h.unit.changes.empty() || !h.unit.facts.empty()) units.push_back(&h.unit);
  }
  if (!units.empty()) {
    // Now and then the power fails in the middle of it.
    if (random_.Chance(0.02)) disk_.CutAfter(random_.Between(1, 8));
    const auto committed = store_->Commit(units);
    if (disk_.off()) return CrashHoned(true);
    disk_.CutAfter(-1);
    if (!committed.ok()) {
      // A full disk: everything waits.
      if (committed.status().code() != absl::StatusCode::kResourceExhausted) {
        wrong_ = fmt::format("the commit failed: {}", StatusMessage(committed.status()));
      }
      if (blocked_since_ns_ < 0) blocked_since_ns_ = now_ns_;
      return;
    }
    if (blocked_since_ns_ >= 0) {
      farm_->Excuse(now_ns_ - blocked_since_ns_, FarmNs());
      blocked_ns_ += now_ns_ - blocked_since_ns_;
      unblocked_ns_ = now_ns_;
      blocked_since_ns_ = -1;
    }
    size_t unit = 0;
    for (Held& h : held_) {
      if (h.unit.changes.empty() && h.unit.facts.empty()) continue;
      const absl::Status& status = (*committed)[unit++];
      if (status.ok()) continue;
      // Two copies of one request came together: the second finds the first one's row.
      if (h.asked_by && status.code() == absl::StatusCode::kInvalidArgument) {
        h.asked_by.reset();
      } else if (wrong_.empty()) {
        wrong_ = fmt::format("the store refused: {}", StatusMessage(status));
      }
    }
  }
  for (const Held& h : held_) CheckSuspects(h.unit);
  // A crash between commit and sending: workers hear nothing of it.
  if (random_.Chance(0.004)) return CrashHoned(random_.Chance(0.5));
  std::deque<Held> held;
  held.swap(held_);
  for (Held& h : held) {
    Release(h.step);
    Finish(h);
  }
}

void FarmSimulation::Finish(Held& held) {
  if (held.asked_by) {
    SimClient& client = clients_[*held.asked_by];
    Accepted(*held.asked_by, held.asked_for);
    Reply(client, {.session = held.asked_for});
    if (!wrong_.empty()) return;
    SimSession& session = sessions_[*held.asked_by];
    farm_->BeginSession(
        {.id = session.id, .project = session.project, .target = kTarget, .device_class = "class"});
    SetDeadline(session);
  }
  if (!held.revokes.empty()) acts_.revoked.insert(held.revokes);
  if (!held.drains.empty()) acts_.drained.insert(held.drains);
  if (held.session == nullptr) return;
  SimSession& session = *held.session;
  search_busy_ = false;
  lost_answers_.insert(held.lost.begin(), held.lost.end());
  unfit_.insert(held.unfit.begin(), held.unfit.end());
  for (const Tuner::Proposal& p : held.proposals) Submit(session, p);
  for (const auto& [attempt, result] : held.results) {
    search_->tuner.Result(attempt, result.outcome, search::LandscapeNs(std::to_string(attempt)),
                          0.01);
    session.in_flight.erase(attempt);
    if (options_.mistake != Mistake::kSendBeforeCommit && !forged_.contains(attempt)) {
      farm_->OnCommitted(session.id, {attempt}, FarmNs());
    }
  }
  if (held.compares) {
    session.compared = true;
    ++counts_.compared;
    farm_->OnCommitted(session.id, {ComparisonOf(session)}, FarmNs());
  }
  if (held.ends) {
    session.ended = true;
    // Nothing can end while nothing can be written, or before honed has heard of it.
    if (session.deadline_ns != INT64_MAX &&
        now_ns_ - std::max(session.deadline_ns, session.created_ns) >
            Policy().run_by_ns + blocked_ns_) {
      wrong_ = fmt::format("a session ended {} ms after its time",
                           (now_ns_ - session.deadline_ns) / kMs);
    }
  }
  Gather({});
}

std::string FarmSimulation::Run() {
  for (int step = 0; step < options_.steps && wrong_.empty(); ++step) {
    const int64_t ns = random_.Between(1, 15) * kMs;
    now_ns_ += ns;
    wall_ns_ += ns;
    if (random_.Chance(0.003)) {
      wall_ns_ += random_.Between(-20'000, 20'000) * kMs;
      ++counts_.clock_jumps;
    }
    if (std::ranges::all_of(sessions_, [](const SimSession& s) { return s.ended; })) break;
    for (SimWorker& w : workers_) {
      StepLink(w);
      StepWorker(w);
    }
    if (blocked_since_ns_ < 0 && !Paused()) StepHoned();
    if (!Paused() && random_.Chance(0.3)) CommitAll();
    if (!wrong_.empty()) break;
    if (random_.Chance(0.003)) CrashHoned(random_.Chance(0.5));
    MayPause();
    const uint64_t fill = random_.Below(1000);
    if (fill < 5) {
      disk_.SetFull(true);
      ++counts_.full_disks;
      // Now and then for longer than leases last.
      if (random_.Chance(0.1)) full_until_ns_ = now_ns_ + random_.Between(3'000, 12'000) * kMs;
    }
    if (fill >= 950 && now_ns_ >= full_until_ns_) disk_.SetFull(false);
    SimWorker& w = workers_[static_cast<size_t>(random_.Below(workers_.size()))];
    if (random_.Chance(0.004)) CrashWorker(w);
    if (w.stream && random_.Chance(0.006)) ++counts_.breaks, Break(w);
    if (random_.Chance(0.001)) Partition();
    if (random_.Chance(0.0015)) Suspend(w);
  }
  return wrong_.empty() ? Check() : wrong_;
}

}  // namespace hone::sim
