#include "server/farm.h"

#include <algorithm>

#include "fmt/format.h"

#include "base/core/check.h"
#include "base/log.h"
#include "base/status.h"
#include "ir/kind_facts.h"
#include "proto/convert.h"
#include "proto/limits.h"
#include "server/device_match.h"

namespace hone::server {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
/// Heartbeats between two turns of honed, from which on it stood still itself.
constexpr int64_t kStandstillBeats = 3;
/// And this, whatever a heartbeat is: five turns of a honed that has nothing to do.
constexpr int64_t kLeastStandstillNs = 500 * kNsPerMs;
/// Processes remembered that a living one kept out.
constexpr size_t kMostRefused = 64;

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

std::string KeyOf(const std::string& worker, const std::string& device) {
  return worker + "/" + device;
}

}  // namespace

Farm::Farm(FarmPolicy policy, Versions versions, uint64_t start, LeaseReader& ended)
    : policy_(policy),
      versions_(std::move(versions)),
      start_(start),
      ended_(ended),
      artifacts_(policy.artifact_cache_bytes) {}

void Farm::Restore(const db::FarmState& state, int64_t now_ns) {
  for (const db::FarmProject& p : state.projects) {
    projects_[p.project] = {.share = p.share, .charged_ns = p.charged_ns};
  }
  for (const db::FarmDevice& d : state.devices) known_devices_[KeyOf(d.worker, d.device)] = d;
  for (const db::FarmSession& s : state.sessions) {
    sessions_[s.id].terms.project = s.project;
    sessions_[s.id].terms.device_class = s.device_class;
  }
  for (const db::FarmSuspect& s : state.suspects) {
    Attempt& a = sessions_[s.session].attempts[s.attempt];
    a.losses = s.losses;
    a.condemned = s.condemned;
    a.condemned_why = s.reason;
    a.lost_with = LostWith(s.reason);
    if (!a.lost_with.empty()) a.avoid.insert(a.lost_with);
  }
  for (const db::FarmLease& l : state.leases) {
    const bool over =
        std::ranges::find(state.sessions, l.session, &db::FarmSession::id) == state.sessions.end();
    if (over || KindOf(l.token) == proto::LeaseKind::kBuild) {
      // What was built and not run went with the cache, as did models of a session that is over.
      LeaseState ended = LeaseState::kGranted;
      Move(ended, LeaseTrigger::kGiveBack);
      step_.changes.push_back(db::EndFarmLease{.token = l.token, .state = ended});
      continue;
    }
    Session& session = sessions_[l.session];
    Attempt& a = session.attempts[l.attempt];
    const std::string key = KeyOf(l.worker, l.device);
    leases_[l.token] = {.session = l.session,
                        .attempt = l.attempt,
                        .worker = key,
                        .instance = l.instance,
                        .state = l.state,
                        .since_ns = now_ns,
                        .granted_ns = now_ns - policy_.start_by_ns - policy_.run_by_ns,
                        .alone = a.losses > 0};
    Move(a.state, AttemptTrigger::kGrant);
    a.token = l.token;
    CountLeases(session, 1);
    Worker& worker = workers_[key];
    worker.name = l.worker;
    worker.hello.device.name = l.device;
    worker.heard_ns = worker.link_ns = now_ns;
    worker.leases.insert(l.token);
  }
  for (auto& [key, worker] : workers_) SettleDevice(worker);
}

void Farm::Send(const Worker& worker, proto::ServerMessage message) {
  if (!worker.stream) return;
  Outgoing& out = step_.messages.emplace_back();
  out.stream = *worker.stream;
  out.message = std::move(message);
}

void Farm::SendCredit(Worker& worker) {
  worker.results_allowed = worker.results_received + policy_.result_window;
  Send(worker, proto::ServerCredit{worker.results_allowed});
}

Farm::Worker* Farm::WorkerOf(StreamId stream) {
  const auto known = streams_.find(stream);
  return known == streams_.end() ? nullptr : &workers_.at(known->second);
}

void Farm::CloseStream(Worker& worker, absl::Status status) {
  if (!worker.stream) return;
  step_.closings.push_back({*worker.stream, std::move(status)});
  streams_.erase(*worker.stream);
  worker.stream.reset();
  worker.upload.reset();
  if (worker.sentinel_ns > 0) CompareSentinels();
}

void Farm::SettleDevice(Worker& worker) {
  const auto known = known_devices_.find(KeyOf(worker.name, worker.hello.device.name));
  if (known == known_devices_.end()) return;
  worker.device = known->second.state;
  worker.reason = known->second.reason;
}

bool Farm::RefuseHello(StreamId stream, const std::string& worker, const proto::Hello& hello,
                       int64_t now_ns) {
  const auto refuse = [&](absl::Status status) {
    ++counters_.refused_workers;
    LogEvent(LogLevel::kInfo, "worker_refused",
             {{"worker", worker}, {"device", hello.device.name}, {"why", StatusMessage(status)}});
    step_.closings.push_back({stream, std::move(status)});
    return true;
  };
  const auto differs = [&](std::string_view what, const auto& theirs, const auto& ours) {
    return refuse(absl::FailedPreconditionError(fmt::format(
        "worker '{}' (hone {}) has {} {}, honed has {}; install the same version of Hone on both",
        worker, hello.program_version, what, theirs, ours)));
  };
  if (hello.protocol != versions_.protocol) {
    return differs("protocol", hello.protocol, versions_.protocol);
  }
  if (hello.role != proto::WorkerRole::kRun && hello.builder_version != versions_.builder) {
    return differs("builder", hello.builder_version, versions_.builder);
  }
  const int policy = ir::VersionsOf(hello.device.target).measurement_policy;
  if (hello.measurement_policy != policy) {
    return differs("measurement policy", hello.measurement_policy, policy);
  }
  const auto known = workers_.find(KeyOf(worker, hello.device.name));
  if (known == workers_.end()) {
    // They are remembered: whoever has a certificate could name ever more.
    const auto devices = std::ranges::count_if(
        workers_, [&](const auto& item) { return item.second.name == worker; });
    if (static_cast<size_t>(devices) < policy_.max_devices) return false;
    return refuse(absl::FailedPreconditionError(
        fmt::format("worker '{}' has {} devices already, {} is one too many; issue its machine a "
                    "name of its own",
                    worker, devices, hello.device.name)));
  }
  Worker& first = known->second;
  if (first.hello.instance == hello.instance) return false;
  const int64_t quiet_ns = now_ns - first.heard_ns;
  const bool alive = first.stream && quiet_ns < 5 * policy_.heartbeat_ns;
  // Its link may be cut for a moment, and it runs on: to take this one would blame its candidate.
  const bool waits = first.refused.contains(hello.instance) && quiet_ns <= policy_.lost_after_ns;
  if (!alive && !waits) return false;
  // One that drains ends by itself, and this one is its successor.
  if (first.state != WorkerState::kDraining && first.refused.size() < kMostRefused) {
    first.refused.insert(hello.instance);
  }
  const std::string ago =
      alive ? ""
            : fmt::format(" (not heard of for {:.0f} s; after {:.0f} it counts as gone)",
                          Seconds(quiet_ns), Seconds(policy_.lost_after_ns));
  return refuse(absl::AlreadyExistsError(
      fmt::format("another live process is worker '{}' with device {}{}; stop it, or issue this "
                  "one a name of its own",
                  worker, hello.device.name, ago)));
}

void Farm::OnHello(StreamId stream, const std::string& name, const proto::Hello& hello,
                   int64_t now_ns) {
  if (RefuseHello(stream, name, hello, now_ns)) return;
  const std::string key = KeyOf(name, hello.device.name);
  Worker& worker = workers_[key];
  if (worker.stream) {
    ++counters_.replaced_streams;
    CloseStream(worker, absl::AbortedError("a newer stream of this worker replaced this one"));
  }
  if (worker.state == WorkerState::kConnected || worker.state == WorkerState::kDraining) {
    Move(worker.state, WorkerTrigger::kDisconnect);
  }
  Move(worker.state, WorkerTrigger::kConnect);
  worker.name = name;
  if (worker.hello.instance != hello.instance) worker.refused.clear();
  worker.hello = hello;
  worker.hello.held.clear();
  worker.best = TargetOf(hello.device.target);
  worker.stream = stream;
  worker.heard_ns = worker.link_ns = now_ns;
  worker.leases_allowed = worker.leases_sent = 0;
  divided_ |= hello.role != proto::WorkerRole::kBoth;
  worker.results_received = 0;
  streams_[stream] = key;
  SettleDevice(worker);
  CompareProbes(hello.device.device_class);
  if (worker.sentinel_ns > 0) CompareSentinels();
  LogEvent(LogLevel::kInfo, "worker_connected",
           {{"worker", name},
            {"device", hello.device.name},
            {"instance", hello.instance.ToHex()},
            {"target", hello.device.target},
            {"held", hello.held.size()}});
  proto::Welcome welcome{.heartbeat_ms = static_cast<int>(policy_.heartbeat_ns / kNsPerMs)};
  Reconcile(key, hello, welcome, now_ns);
  Send(worker, std::move(welcome));
  SendCredit(worker);
  // It may have been on its way when the last stream was cut.
  if (worker.probe_asked) Send(worker, proto::Probe{"asked for on an earlier stream"});
  GrantAll(now_ns);
}

void Farm::Reconcile(const std::string& key, const proto::Hello& hello, proto::Welcome& welcome,
                     int64_t now_ns) {
  Worker& worker = workers_.at(key);
  std::map<Hash128, bool> held;
  for (const proto::HeldLease& lease : hello.held) held[lease.token] = lease.started;
  const std::set<Hash128> ours = worker.leases;
  for (const Hash128& token : ours) {
    const Lease& lease = leases_.at(token);
    if (HasAnswer(lease)) continue;
    if (lease.instance != hello.instance) {
      EndLease(token, LeaseTrigger::kLose, Blame::kCandidate, "its worker's process ended", now_ns);
    } else if (!held.contains(token)) {
      EndLease(token, LeaseTrigger::kGiveBack, Blame::kNobody, "the worker never had it", now_ns);
    }
  }
  for (const auto& [token, started] : held) {
    const auto open = leases_.find(token);
    if (open != leases_.end() && open->second.worker == key) {
      welcome.keep.push_back(token);
      if (started) MarkStarted(token, key, now_ns);
      continue;
    }
    // One that was closed by its result is kept, so that its result is sent again and acknowledged.
    const std::optional<db::FarmLease> ended = ended_.FindLease(token);
    const bool done = ended && ended->state == LeaseState::kDone;
    (done ? welcome.keep : welcome.drop).push_back(token);
  }
}

void Farm::OnGone(StreamId stream, int64_t now_ns) {
  Worker* worker = WorkerOf(stream);
  if (worker == nullptr) return;
  streams_.erase(stream);
  worker->stream.reset();
  worker->upload.reset();  // the next stream begins it again
  if (worker->sentinel_ns > 0) CompareSentinels();
  worker->heard_ns = worker->link_ns = now_ns;
  Move(worker->state, WorkerTrigger::kDisconnect);
  LogEvent(LogLevel::kInfo, "worker_disconnected",
           {{"worker", worker->name},
            {"device", worker->hello.device.name},
            {"leases", worker->leases.size()}});
}

void Farm::MarkStarted(const Hash128& token, const std::string& key, int64_t now_ns) {
  // Nothing of a build lease runs: its worker's end is no word against the candidate.
  if (KindOf(token) == proto::LeaseKind::kBuild) return;
  const auto lease = leases_.find(token);
  if (lease == leases_.end() || lease->second.worker != key ||
      lease->second.state != LeaseState::kGranted) {
    return;
  }
  Move(lease->second.state, LeaseTrigger::kStart);
  lease->second.since_ns = now_ns;
  // Durably: who runs it is a suspect's worker also when honed dies with it.
  step_.changes.push_back(db::StartFarmLease{token});
}

void Farm::OnMessage(StreamId stream, const proto::WorkerMessage& message, int64_t now_ns) {
  Worker* worker = WorkerOf(stream);
  if (worker == nullptr) return;
  worker->heard_ns = now_ns;
  const std::string key = streams_.at(stream);
  if (const auto* heartbeat = std::get_if<proto::Heartbeat>(&message)) {
    worker->busy_ns = heartbeat->busy_ns;
    if (heartbeat->sentinel_ns > 0 && heartbeat->sentinel_ns != worker->sentinel_ns) {
      worker->sentinel_ns = heartbeat->sentinel_ns;
      CompareSentinels();
    }
    worker->meter.Heartbeat(heartbeat->busy_ns, now_ns);
    for (const proto::HeldLease& lease : heartbeat->held) {
      if (lease.started) MarkStarted(lease.token, key, now_ns);
    }
  } else if (const auto* started = std::get_if<proto::Started>(&message)) {
    MarkStarted(started->token, key, now_ns);
  } else if (const auto* result = std::get_if<proto::WorkResult>(&message)) {
    OnResult(*worker, *result, now_ns);
  } else if (const auto* returned = std::get_if<proto::Returned>(&message)) {
    OnReturned(key, *returned, now_ns);
  } else if (const auto* credit = std::get_if<proto::WorkerCredit>(&message)) {
    worker->leases_allowed = std::max(worker->leases_allowed, credit->leases);
  } else if (const auto* built = std::get_if<proto::Built>(&message)) {
    OnBuilt(*worker, *built, now_ns);
  } else if (const auto* chunk = std::get_if<proto::ArtifactChunk>(&message)) {
    return OnChunk(*worker, *chunk, now_ns);
  } else if (const auto* fetch = std::get_if<proto::Fetch>(&message)) {
    OnFetch(*worker, *fetch, now_ns);
  } else if (const auto* probes = std::get_if<proto::Probes>(&message)) {
    OnProbes(*worker, *probes);
  } else if (const auto* lost = std::get_if<proto::DeviceLost>(&message)) {
    OnDeviceLost(*worker, *lost, now_ns);
  } else if (std::holds_alternative<proto::Draining>(message)) {
    worker->refused.clear();
    Move(worker->state, WorkerTrigger::kDrain);
  } else {
    CloseStream(*worker, absl::InvalidArgumentError("a second Hello on one stream"));
    Move(worker->state, WorkerTrigger::kDisconnect);
  }
  hungry_.insert(key);
  GrantAll(now_ns);
}

Farm::Worker* Farm::ForgetLease(const std::string& key, const Hash128& token) {
  hungry_.insert(key);
  const auto found = workers_.find(key);
  if (found == workers_.end()) return nullptr;
  Worker& worker = found->second;
  worker.leases.erase(token);
  // What it reserved is others' again, whether or not this worker ever says another word, and it
  // may begin to send something else.
  if (worker.upload && worker.upload->token == token) worker.upload.reset();
  return &worker;
}

void Farm::EndLease(const Hash128& token, LeaseTrigger event, Blame blame, const std::string& why,
                    int64_t now_ns) {
  const auto found = leases_.find(token);
  Lease lease = found->second;
  leases_.erase(found);
  const bool started = lease.state == LeaseState::kStarted;
  Move(lease.state, event);
  step_.changes.push_back(db::EndFarmLease{.token = token, .state = lease.state});
  const Worker* const worker = ForgetLease(lease.worker, token);
  Session& session = sessions_.at(lease.session);
  CountLeases(session, -1);
  const bool build = KindOf(token) == proto::LeaseKind::kBuild;
  if (build) --session.building;
  // The device was busy for it; only its budget does not feel it.
  if (started) Charge(session, now_ns - lease.since_ns, false);
  Attempt& attempt = session.attempts.at(lease.attempt);
  Move(attempt.state,
       event == LeaseTrigger::kBuilt ? AttemptTrigger::kBuilt : AttemptTrigger::kTakeBack);
  attempt.token = {};
  if (event == LeaseTrigger::kExpire) ++counters_.expired;
  if (event == LeaseTrigger::kLose) ++counters_.lost;
  const bool faulty = event == LeaseTrigger::kExpire || event == LeaseTrigger::kLose;
  if (build && faulty) PauseAfterLostBuild(attempt, lease.worker, now_ns);
  if (blame == Blame::kCandidate && started) {
    ++attempt.losses;
    attempt.condemned = attempt.losses >= policy_.max_losses;
    attempt.condemned_why = LossReason(attempt.losses, lease.worker, why);
    // It may have been the machine: another one has the next word.
    attempt.avoid.insert(lease.worker);
    attempt.lost_with = lease.worker;
    // What it answered before this start of honed may be lost with that one's last commit.
    const bool counts = worker != nullptr && token.high == start_;
    attempt.lost_after = counts ? worker->good_answers : -1;
    step_.changes.push_back(db::PutFarmSuspect{{.session = lease.session,
                                                .attempt = lease.attempt,
                                                .losses = attempt.losses,
                                                .condemned = attempt.condemned,
                                                .reason = attempt.condemned_why}});
  }
  if (attempt.condemned) {
    ++counters_.condemned;
    Condemn(lease.session, lease.attempt, attempt);
  } else if (attempt.job) {
    Wait(session, lease.attempt, attempt, now_ns);
  }
  LogEvent(faulty ? LogLevel::kInfo : LogLevel::kDebug, "lease_ended",
           {{"session", lease.session.ToHex()},
            {"attempt", lease.attempt},
            {"lease", token.ToHex()},
            {"worker", lease.worker},
            {"state", std::string(NameOf(lease.state))},
            {"why", why}});
}

void Farm::LoseWorker(const std::string& key, const std::string& why, int64_t now_ns) {
  Worker& worker = workers_.at(key);
  const std::set<Hash128> leases = worker.leases;
  for (const Hash128& token : leases) {
    if (HasAnswer(leases_.at(token))) continue;
    EndLease(token, LeaseTrigger::kLose, Blame::kCandidate, why, now_ns);
  }
}

void Farm::TakeBack(Worker& worker, const absl::Status& why, int64_t now_ns) {
  const std::set<Hash128> leases = worker.leases;
  for (const Hash128& token : leases) {
    if (HasAnswer(leases_.at(token))) continue;
    ++counters_.revoked;
    EndLease(token, LeaseTrigger::kRevoke, Blame::kNobody, StatusMessage(why), now_ns);
  }
  if (!worker.stream) return;
  CloseStream(worker, why);
  Move(worker.state, WorkerTrigger::kDisconnect);
}

void Farm::RevokeWorker(const std::string& name, int64_t now_ns) {
  for (auto& [key, worker] : workers_) {
    if (worker.name != name) continue;
    TakeBack(worker, absl::PermissionDeniedError("the worker's certificate was revoked"), now_ns);
  }
  GrantAll(now_ns);
}

void Farm::EndStream(StreamId stream, const absl::Status& why, int64_t now_ns) {
  Worker* const worker = WorkerOf(stream);
  if (worker == nullptr) return;
  TakeBack(*worker, why, now_ns);
  GrantAll(now_ns);
}

void Farm::Excuse(int64_t ns, int64_t now_ns) {
  for (auto& [token, lease] : leases_) lease.since_ns = std::min(lease.since_ns + ns, now_ns);
  for (auto& [key, worker] : workers_) worker.heard_ns = std::min(worker.heard_ns + ns, now_ns);
  turn_ns_ = now_ns;
}

void Farm::OnTurn(int64_t now_ns) {
  const int64_t gap_ns = now_ns - turn_ns_.value_or(now_ns);
  turn_ns_ = now_ns;
  if (gap_ns <= std::max(kStandstillBeats * policy_.heartbeat_ns, kLeastStandstillNs)) return;
  // What workers said meanwhile still lies in sockets, behind this turn.
  LogEvent(LogLevel::kWarning, "stood_still", {{"ms", gap_ns / kNsPerMs}});
  Excuse(gap_ns, now_ns);
}

void Farm::Tick(int64_t now_ns) {
  std::vector<Hash128> late;
  for (const auto& [token, lease] : leases_) {
    if (HasAnswer(lease)) continue;
    const bool granted = lease.state == LeaseState::kGranted;
    if (!granted && lease.state != LeaseState::kStarted) continue;
    const int64_t limit = granted ? policy_.start_by_ns : policy_.run_by_ns;
    if (now_ns - lease.since_ns > limit) late.push_back(token);
  }
  for (const Hash128& token : late) {
    const Lease& lease = leases_.at(token);
    const bool started = lease.state == LeaseState::kStarted;
    const auto worker = workers_.find(lease.worker);
    if (worker != workers_.end()) Send(worker->second, proto::Revoke{token, "its time is over"});
    EndLease(token, LeaseTrigger::kExpire, started ? Blame::kCandidate : Blame::kNobody,
             started ? "it ran longer than its lease" : "it was not started in time", now_ns);
  }
  for (auto& [id, session] : sessions_) {
    if (session.begun && now_ns >= session.deadline_ns) StopAtDeadline(id, session, now_ns);
  }
  SettleDoubts(now_ns);
  for (auto& [key, worker] : workers_) {
    if (now_ns - worker.heard_ns <= policy_.lost_after_ns) continue;
    if (worker.stream) {
      CloseStream(worker, absl::DeadlineExceededError("no word from the worker"));
      Move(worker.state, WorkerTrigger::kDisconnect);
    }
    if (worker.state != WorkerState::kGone) continue;
    Move(worker.state, WorkerTrigger::kGiveUp);
    LogEvent(LogLevel::kInfo, "worker_lost",
             {{"worker", worker.name}, {"device", worker.hello.device.name}});
    LoseWorker(key, "no word from it", now_ns);
  }
  for (auto& [key, worker] : workers_) {
    if (worker.device != DeviceState::kDraining || !worker.leases.empty()) continue;
    Move(worker.device, DeviceTrigger::kEmptied);
    known_devices_[key].state = worker.device;
    step_.changes.push_back(
        db::PutFarmDevice{{worker.name, worker.hello.device.name, worker.device, worker.reason}});
  }
  for (auto& [key, worker] : workers_) {
    if (MayGet(worker)) hungry_.insert(key);
    RenewCredit(worker);
  }
  GrantAll(now_ns);
}

FarmStep Farm::Take() {
  if (const auto due_ns = std::exchange(grants_due_ns_, std::nullopt)) MakeGrants(*due_ns);
  return TakePart();
}

FarmStep Farm::TakePart() { return std::exchange(step_, {}); }

std::vector<Outgoing> Farm::TakeAnswers() {
  if (!step_.changes.empty()) return {};
  return std::exchange(step_.messages, {});
}

}  // namespace hone::server
