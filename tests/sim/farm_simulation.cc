#include "tests/sim/farm_simulation.h"

#include <algorithm>

#include "fmt/format.h"

#include "base/core/check.h"
#include "base/status.h"
#include "proto/convert.h"

namespace hone::sim {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr char kTarget[] = "cpu:avx2,threads=1";
constexpr int64_t kPoison = 7;  ///< an attempt that kills every worker that runs it

class Reader final : public server::LeaseReader {
 public:
  explicit Reader(db::FarmStore& store) : store_(store) {}
  std::optional<db::FarmLease> FindLease(const Hash128& token) override {
    return store_.FindLease(token).value();
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
  return policy;
}

db::Event ResultEvent(const Hash128& session, int64_t attempt) {
  db::Event event;
  event.id = HashBytes(fmt::format("{} {}", session.ToHex(), attempt));
  event.session = session;
  event.type = "result";
  event.payload = std::to_string(attempt);
  return event;
}

}  // namespace

FarmSimulation::FarmSimulation(const SimulationOptions& options)
    : options_(options), random_(options.seed) {
  session_ = HashBytes("session");
  log_ = db::OpenLog(folder_ / "tune.db", {.mode = db::OpenMode::kWrite}).value();
  store_ = db::FarmStore::Open(*log_).value();
  db::Session row;
  row.id = session_;
  row.request = row.versions = "{}";
  db::FarmUnit unit;
  unit.facts.sessions.push_back(row);
  unit.changes.push_back(db::AddFarmSession{
      {.id = session_, .owner = "alice", .project = "alice", .state = db::SessionState::kRunning}});
  HONE_CHECK(store_->Commit({&unit}).ok());
  for (int i = 0; i < options.workers; ++i) {
    SimWorker& w = workers_.emplace_back();
    w.name = fmt::format("w{}", i);
    CrashWorker(w);
  }
  counts_ = {};
  StartHoned();
}

FarmSimulation::~FarmSimulation() = default;

void FarmSimulation::StartHoned() {
  const uint64_t start =
      options_.mistake == Mistake::kReuseStart ? 1 : HashBytes(std::to_string(++starts_)).high;
  reader_ = std::make_unique<Reader>(*store_);
  farm_ = std::make_unique<server::Farm>(
      Policy(), server::Farm::Versions{.protocol = 1, .builder = "b", .measurement_policy = 1},
      start, *reader_);
  db::FarmState state = store_->Load().value();
  if (options_.mistake == Mistake::kForgetOpenLeases) state.leases.clear();
  farm_->Restore(state, now_ns_);
  farm_->BeginSession(
      {.id = session_, .project = "alice", .target = kTarget, .device_class = "class"});
  submitted_.clear();
  collected_.clear();
  closed_.clear();
  // As a restarted driver does, from the log's events.
  const std::vector<db::Event> events = log_->EventsOf(session_).value();
  for (const db::Event& event : events) {
    closed_.insert(std::stoll(event.payload));
  }
  held_.clear();
}

void FarmSimulation::CrashHoned() {
  if (farm_) {
    const server::FarmCounters& c = farm_->counters();
    counts_.farm.granted += c.granted;
    counts_.farm.duplicates += c.duplicates;
    counts_.farm.stale += c.stale;
    counts_.farm.conflicts += c.conflicts;
    counts_.farm.expired += c.expired;
    counts_.farm.lost += c.lost;
    counts_.farm.condemned += c.condemned;
  }
  ++counts_.honed_crashes;
  for (SimWorker& w : workers_) Break(w);
  // What was not committed is gone; so is what was, but not sent.
  StartHoned();
}

void FarmSimulation::Break(SimWorker& w) {
  if (!w.stream) return;
  farm_->OnGone(*w.stream, now_ns_);
  w.stream.reset();
  w.to_honed.clear();
  w.to_worker.clear();
  w.desk->OnDisconnected();
  w.dial_ns = now_ns_ + random_.Between(10, 400) * kMs;
}

void FarmSimulation::CrashWorker(SimWorker& w) {
  if (w.desk) {
    ++counts_.worker_crashes;
    Break(w);
  }
  w.jobs.clear();
  w.instance = {random_.Next(), random_.Next()};
  proto::Hello hello{.protocol = 1, .builder_version = "b", .measurement_policy = 1};
  hello.instance = w.instance;
  hello.device = {
      .name = "cpu:0", .device_class = "class", .fingerprint = "f", .target = kTarget, .cores = 1};
  w.desk = std::make_unique<worker::LeaseDesk>(worker::DeskOptions{.ahead = 4}, hello);
  w.dial_ns = now_ns_ + random_.Between(10, 400) * kMs;
}

void FarmSimulation::Dial(SimWorker& w) {
  w.stream = next_stream_++;
  w.desk->OnConnected();
}

void FarmSimulation::StepWorker(SimWorker& w) {
  if (!w.stream && now_ns_ >= w.dial_ns) Dial(w);
  while (w.stream && !w.to_worker.empty() && w.to_worker.front().first <= now_ns_) {
    w.desk->OnServer(w.to_worker.front().second, now_ns_);
    w.to_worker.pop_front();
  }
  for (const auto& a : w.desk->TakeAcknowledged()) {
    if (a.verdict != proto::Verdict::kAccepted) continue;
    if (!accepted_.try_emplace(a.token, a.digest).second) wrong_ = "one result acknowledged twice";
  }
  while (const auto job = w.desk->TakeJob()) {
    const int64_t begin_ns = (w.jobs.empty() ? now_ns_ : w.jobs.back().end_ns) + Delay();
    w.jobs.push_back({.number = job->number,
                      .attempt = std::stoll(job->job.traces.front()),
                      .start_ns = begin_ns,
                      .end_ns = begin_ns + random_.Between(5, 120) * kMs});
  }
  w.desk->Tick(now_ns_);
  while (!w.jobs.empty()) {
    Running& job = w.jobs.front();
    if (!job.started && now_ns_ >= job.start_ns) {
      job.started = true;
      w.desk->Start(job.number, now_ns_);
    }
    if (now_ns_ < job.end_ns) break;
    if (job.attempt == kPoison) return CrashWorker(w);
    proto::WorkResult result{.outcome = measure::Outcome::kOk};
    result.samples_ns = {random_.Between(1000, 2000)};
    result.run_ns = 10 * kMs;
    if (random_.Chance(0.03)) {
      result = {.outcome = measure::Outcome::kWorkerLost, .message = "no builder"};
    }
    w.desk->Finish(job.number, std::move(result));
    w.jobs.erase(w.jobs.begin());
  }
  while (w.stream) {
    auto message = w.desk->TakeMessage();
    if (!message) break;
    const int64_t last_ns = w.to_honed.empty() ? now_ns_ : w.to_honed.back().first;
    w.to_honed.emplace_back(std::max(last_ns, now_ns_ + Delay()), *std::move(message));
  }
  if (w.stream && random_.Chance(0.02)) w.to_honed.emplace_back(now_ns_, w.desk->MakeHeartbeat());
}

void FarmSimulation::Gather(db::FarmUnit unit, std::vector<int64_t> commits) {
  Held held{.unit = std::move(unit), .step = farm_->Take(), .commits = std::move(commits)};
  for (db::FarmChange& change : held.step.changes) held.unit.changes.push_back(std::move(change));
  held.step.changes.clear();
  if (options_.mistake == Mistake::kSendBeforeCommit) {
    Release(std::exchange(held.step, {}));
    for (const int64_t attempt : held.commits) farm_->OnCommitted(session_, {attempt}, now_ns_);
    const server::FarmStep early = farm_->Take();
    for (const db::FarmChange& change : early.changes) held.unit.changes.push_back(change);
    Release(early);
  }
  held_.push_back(std::move(held));
}

void FarmSimulation::TakeResult(const server::Delivery& delivery) {
  if (!submitted_.contains(delivery.attempt)) wrong_ = "a result of what was not asked for";
  if (!collected_.try_emplace(delivery.attempt, delivery.result).second) {
    wrong_ = fmt::format("attempt {} was delivered twice", delivery.attempt);
  }
}

void FarmSimulation::Release(const server::FarmStep& step) {
  for (const server::Outgoing& out : step.messages) {
    for (SimWorker& w : workers_) {
      if (w.stream != out.stream) continue;
      const int64_t last_ns = w.to_worker.empty() ? now_ns_ : w.to_worker.back().first;
      w.to_worker.emplace_back(std::max(last_ns, now_ns_ + Delay()), out.message);
    }
  }
  for (const server::Closing& closing : step.closings) {
    for (SimWorker& w : workers_) {
      if (w.stream == closing.stream) Break(w);
    }
  }
  for (const server::Delivery& delivery : step.deliveries) TakeResult(delivery);
}

void FarmSimulation::CommitAll() {
  if (full_) return;
  std::deque<Held> held;
  held.swap(held_);
  std::vector<const db::FarmUnit*> units;
  for (const Held& h : held) {
    if (!h.unit.changes.empty() || !h.unit.facts.empty()) units.push_back(&h.unit);
  }
  if (!units.empty()) {
    const auto committed = store_->Commit(units).value();
    for (const absl::Status& status : committed) {
      if (!status.ok() && wrong_.empty()) {
        wrong_ = fmt::format("the store refused: {}", StatusMessage(status));
      }
    }
  }
  // A crash between commit and sending: workers hear nothing of it.
  if (random_.Chance(0.004)) return CrashHoned();
  for (const Held& h : held) {
    Release(h.step);
    for (const int64_t attempt : h.commits) {
      closed_.insert(attempt);
      if (options_.mistake != Mistake::kSendBeforeCommit) {
        farm_->OnCommitted(session_, {attempt}, now_ns_);
      }
    }
    if (!h.commits.empty()) Gather({}, {});
  }
}

void FarmSimulation::Drive() {
  constexpr size_t kAtOnce = 10;
  for (int64_t attempt = 0; attempt < options_.attempts; ++attempt) {
    if (submitted_.size() - closed_.size() >= kAtOnce && submitted_.size() > closed_.size()) break;
    if (closed_.contains(attempt) || submitted_.contains(attempt)) continue;
    submitted_.insert(attempt);
    farm_->Submit(session_, attempt,
                  {.workload = "w", .target = kTarget, .traces = {std::to_string(attempt)}},
                  now_ns_);
  }
  if (collected_.empty() || random_.Chance(0.5)) return;
  std::vector<int64_t> attempts;
  db::FarmUnit unit;
  for (const auto& [attempt, result] : collected_) {
    attempts.push_back(attempt);
    unit.facts.events.push_back(ResultEvent(session_, attempt));
    if (result.message.find("its worker was lost") == 0) condemned_.insert(attempt);
  }
  collected_.clear();
  if (options_.mistake != Mistake::kCloseWithoutLease) {
    unit.changes = farm_->EndsOf(session_, attempts);
  }
  Gather(std::move(unit), std::move(attempts));
}

void FarmSimulation::StepHoned() {
  for (SimWorker& w : workers_) {
    while (w.stream && !w.to_honed.empty() && w.to_honed.front().first <= now_ns_) {
      const proto::WorkerMessage message = std::move(w.to_honed.front().second);
      w.to_honed.pop_front();
      if (const auto* hello = std::get_if<proto::Hello>(&message)) {
        farm_->OnHello(*w.stream, w.name, *hello, now_ns_);
      } else {
        farm_->OnMessage(*w.stream, message, now_ns_);
      }
    }
  }
  Drive();
  if (now_ns_ >= next_tick_ns_) {
    next_tick_ns_ = now_ns_ + 100 * kMs;
    farm_->Tick(now_ns_);
  }
  Gather({}, {});
}

std::string FarmSimulation::Run() {
  for (int step = 0; step < options_.steps && wrong_.empty(); ++step) {
    now_ns_ += random_.Between(1, 15) * kMs;
    if (static_cast<int>(closed_.size()) == options_.attempts) break;
    for (SimWorker& w : workers_) StepWorker(w);
    StepHoned();
    if (random_.Chance(0.3)) CommitAll();
    if (random_.Chance(0.003)) CrashHoned();
    if (random_.Chance(0.005)) full_ = !full_, counts_.full_disks += full_;
    if (full_ && random_.Chance(0.1)) full_ = false;
    SimWorker& w = workers_[static_cast<size_t>(random_.Below(workers_.size()))];
    if (random_.Chance(0.004)) CrashWorker(w);
    if (w.stream && random_.Chance(0.006)) ++counts_.breaks, Break(w);
  }
  return wrong_.empty() ? Check() : wrong_;
}

std::string FarmSimulation::Check() {
  if (static_cast<int>(closed_.size()) != options_.attempts) {
    return fmt::format("{} of {} attempts ended", closed_.size(), options_.attempts);
  }
  std::map<std::string, int> results;
  const std::vector<db::Event> events = log_->EventsOf(session_).value();
  for (const db::Event& event : events) ++results[event.payload];
  for (const auto& [attempt, count] : results) {
    if (count != 1) return fmt::format("attempt {} has {} results", attempt, count);
  }
  if (static_cast<int>(results.size()) != options_.attempts) return "a result is missing";
  std::map<int64_t, int> done;
  std::map<Hash128, std::string> contents;
  const std::vector<db::FarmLease> leases = store_->LeasesOf(session_).value();
  for (const db::FarmLease& lease : leases) {
    if (lease.state < db::LeaseState::kDone) {
      return fmt::format("a lease of attempt {}, which has ended, is open", lease.attempt);
    }
    if (lease.state != db::LeaseState::kDone) continue;
    contents[lease.token] = lease.content;
    if (++done[lease.attempt] > 1) return fmt::format("attempt {} closed twice", lease.attempt);
  }
  for (const auto& [token, digest] : accepted_) {
    const auto lease = contents.find(token);
    if (lease == contents.end()) return "acknowledged and not in the log: " + token.ToHex();
    if (lease->second != digest) return "acknowledged with other content: " + token.ToHex();
  }
  // No worker could answer the poisonous one; others are condemned only where crashes met them.
  counts_.condemned = static_cast<int>(condemned_.size());
  if (!condemned_.contains(kPoison)) return "the poisonous attempt was not condemned";
  for (int64_t attempt = 0; attempt < options_.attempts; ++attempt) {
    if (done.contains(attempt) == condemned_.contains(attempt)) {
      return fmt::format("attempt {} was {}", attempt,
                         done.contains(attempt) ? "measured and condemned" : "neither");
    }
  }
  const db::FarmState left = store_->Load().value();
  const int64_t charged = left.projects.front().charged_ns;
  if (charged != static_cast<int64_t>(done.size()) * 10 * kMs) {
    return fmt::format("{} ns charged for {} results", charged, done.size());
  }
  return "";
}

}  // namespace hone::sim
