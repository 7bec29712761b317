#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/log.h"
#include "proto/limits.h"
#include "server/device_match.h"
#include "server/farm.h"

// Who gets what next, and what can be seen of a Farm.
namespace hone::server {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int kLeastCapacity = 8;
constexpr int kMostCapacity = 4096;

/// Whether `wanted` is Farm::ClassOf's name for this device alone.
bool IsOwnClass(std::string_view wanted, std::string_view key, const FarmWorker& worker) {
  constexpr std::string_view kAs = " as ";
  const std::string& device_class = worker.hello.device.device_class;
  return wanted.size() == device_class.size() + kAs.size() + key.size() &&
         wanted.starts_with(device_class) && wanted.ends_with(key) &&
         wanted.substr(device_class.size(), kAs.size()) == kAs;
}

/// A device is of its own class for ever, whoever else is there: a session may be bound to it. It
/// is of the one it told while it agrees with that.
bool IsOf(std::string_view wanted, std::string_view key, const FarmWorker& worker) {
  if (!worker.own_class && wanted == worker.hello.device.device_class) return true;
  return IsOwnClass(wanted, key, worker);
}

}  // namespace

bool Farm::MayRun(const std::string& key, const Worker& worker, const Session& session) const {
  return session.begun && worker.hello.role != proto::WorkerRole::kBuild &&
         IsOf(session.terms.device_class, key, worker) && worker.best && session.target &&
         CanRun(*worker.best, worker.hello.device.cores, *session.target);
}

bool Farm::OthersCanRun(const std::string& key, const Session& session,
                        const std::set<std::string>& but) const {
  return std::ranges::any_of(workers_, [&](const auto& item) {
    const auto& [other, worker] = item;
    return other != key && worker.stream && worker.state == WorkerState::kConnected &&
           worker.device == DeviceState::kActive && !but.contains(other) &&
           MayRun(other, worker, session);
  });
}

Farm::ClassUse& Farm::UseOf(const Session& session) {
  return projects_[session.terms.project].classes[session.terms.device_class];
}

void Farm::CountLeases(Session& session, int64_t more) {
  session.leased += more;
  projects_[session.terms.project].leased += more;
  UseOf(session).leased += more;
}

void Farm::Charge(const Session& session, int64_t ns, bool counts) {
  Project& project = projects_[session.terms.project];
  if (counts) project.charged_ns += ns;
  UseOf(session).virtual_ns += static_cast<double>(ns) / static_cast<double>(project.share);
}

void Farm::Wake(const Session& session) {
  ClassUse& use = UseOf(session);
  const SessionTerms& terms = session.terms;
  const bool busy = use.leased > 0 || std::ranges::any_of(sessions_, [&](const auto& item) {
                      const Session& other = item.second;
                      return !other.waiting.empty() && other.terms.project == terms.project &&
                             other.terms.device_class == terms.device_class;
                    });
  // It was idle: others had its share, and it has nothing to catch up.
  if (!busy) use.virtual_ns = std::max(use.virtual_ns, clocks_ns_[terms.device_class]);
}

Farm::Session* Farm::PickSession(const std::string& key, const Worker& worker, int64_t now_ns,
                                 int64_t* attempt) {
  struct Best {
    Session* session = nullptr;
    double use_ns = 0, under_way_ns = 0;
    int64_t attempt = 0;
  };
  std::map<std::string_view, Best> bests;  // by class, for each has a clock of its own
  for (auto& [id, session] : sessions_) {
    // A run worker has what is built, whoever waits longer.
    const std::set<int64_t>& waiting =
        worker.hello.role == proto::WorkerRole::kRun ? session.ready : session.waiting;
    if (waiting.empty() || !MayServe(key, worker, session)) continue;
    const Project& project = projects_.at(session.terms.project);
    const ClassUse& used = project.classes.at(session.terms.device_class);
    // What is under way counts as it usually does, until its charge is known.
    const double under_way_ns =
        static_cast<double>(used.leased) * used.mean_run_ns / static_cast<double>(project.share);
    const double use_ns = used.virtual_ns + under_way_ns;
    Best& best = bests[session.terms.device_class];
    if (best.session != nullptr) {
      const bool same = best.session->terms.project == session.terms.project;
      const int priority = best.session->terms.priority;
      if (!same && use_ns >= best.use_ns) continue;
      if (same && session.terms.priority < priority) continue;
      if (same && session.terms.priority == priority && session.leased >= best.session->leased) {
        continue;
      }
    }
    for (const int64_t number : waiting) {
      if (session.attempts.at(number).not_before_ns > now_ns) continue;
      if (!MayHave(key, worker, session, number)) continue;
      best = {&session, use_ns, under_way_ns, number};
      break;
    }
  }
  // A device that serves two classes (its own alone is one, who builds has all): by what is under
  // way, for clocks of two classes say nothing of each other.
  const Best* first = nullptr;
  for (const auto& [name, best] : bests) {
    if (best.session == nullptr) continue;
    if (first == nullptr || best.under_way_ns < first->under_way_ns) first = &best;
  }
  if (first == nullptr) return nullptr;
  *attempt = first->attempt;
  return first->session;
}

bool Farm::GrantOne(const std::string& key, Worker& worker, int64_t now_ns) {
  int64_t number = 0;
  Session* session = ReservedFor(key, worker, now_ns, &number);
  if (session == nullptr) session = PickSession(key, worker, now_ns, &number);
  if (session == nullptr) return false;
  Attempt& attempt = session->attempts.at(number);
  proto::Grant grant;
  if (!Equip(*session, number, worker, &grant)) return true;
  const bool build = grant.kind == proto::LeaseKind::kBuild;
  Unwait(*session, number);
  Move(attempt.state, AttemptTrigger::kGrant);
  attempt.token = MakeToken(start_, ++tokens_, grant.kind);
  leases_[attempt.token] = {.session = session->terms.id,
                            .attempt = number,
                            .worker = key,
                            .instance = worker.hello.instance,
                            .since_ns = now_ns,
                            .granted_ns = now_ns,
                            .alone = attempt.losses > 0 && !build,
                            .wanted = grant.wanted,
                            .artifacts = grant.artifacts};
  Unreserve(key, worker);
  worker.leases.insert(attempt.token);
  ++worker.leases_sent;
  worker.last_grant = tokens_;
  CountLeases(*session, 1);
  if (build) ++session->building;
  double& clock_ns = clocks_ns_[session->terms.device_class];
  clock_ns = std::max(clock_ns, UseOf(*session).virtual_ns);
  ++counters_.granted;
  counters_.granted_builds += build ? 1 : 0;
  LogEvent(LogLevel::kDebug, "lease_granted",
           {{"session", session->terms.id.ToHex()},
            {"attempt", number},
            {"lease", attempt.token.ToHex()},
            {"worker", key}});
  step_.changes.push_back(db::AddFarmLease{{.token = attempt.token,
                                            .session = session->terms.id,
                                            .attempt = number,
                                            .worker = worker.name,
                                            .device = worker.hello.device.name,
                                            .instance = worker.hello.instance}});
  grant.token = attempt.token;
  grant.session = session->terms.id;
  grant.attempt = number;
  grant.job = *attempt.job;
  grant.start_by_ms = (policy_.start_by_ns - policy_.grace_ns) / kNsPerMs;
  grant.run_by_ms = (policy_.run_by_ns - policy_.grace_ns) / kNsPerMs;
  Send(worker, std::move(grant));
  return true;
}

void Farm::MakeGrants(int64_t now_ns) {
  if (std::ranges::all_of(sessions_, [](const auto& s) { return s.second.waiting.empty(); })) {
    return;
  }
  ReserveForSuspects(now_ns);
  // The least loaded first, of these who was served longest ago.
  std::set<std::tuple<size_t, uint64_t, std::string_view>> ready;
  const auto add = [&](const std::string& key, const Worker& worker) {
    if (MayGet(worker)) ready.emplace(worker.leases.size(), worker.last_grant, key);
  };
  std::erase_if(hungry_, [&](const std::string& key) {
    const auto worker = workers_.find(key);
    if (worker == workers_.end() || !MayGet(worker->second)) return true;
    add(worker->first, worker->second);
    return false;
  });
  while (!ready.empty()) {
    const auto first = ready.extract(ready.begin());
    const auto found = workers_.find(std::string(std::get<std::string_view>(first.value())));
    // A worker that can have nothing of what waits is done; others take turns with the rest.
    if (GrantOne(found->first, found->second, now_ns)) add(found->first, found->second);
  }
}

bool Farm::MayGet(const Worker& worker) const {
  if (!worker.stream || worker.state != WorkerState::kConnected ||
      worker.device != DeviceState::kActive || worker.leases_sent >= worker.leases_allowed ||
      worker.leases.size() >= proto::kMaxHeld) {
    return false;
  }
  // A suspect runs alone.
  if (worker.reserved && !IsIdle(worker)) return false;
  return std::ranges::none_of(worker.leases, [&](const Hash128& token) {
    const OpenLease& lease = leases_.at(token);
    return lease.alone && !HasAnswer(lease);
  });
}

bool Farm::IsIdle(const Worker& worker) const {
  return std::ranges::all_of(worker.leases,
                             [&](const Hash128& token) { return HasAnswer(leases_.at(token)); });
}

std::optional<proto::DeviceFacts> Farm::FindDevice(const std::string& target,
                                                   const std::string& device_class) const {
  std::optional<proto::DeviceFacts> drifted;
  for (const auto& [key, worker] : workers_) {
    if (worker.state != WorkerState::kConnected || worker.device != DeviceState::kActive ||
        worker.hello.role == proto::WorkerRole::kBuild) {
      continue;
    }
    proto::DeviceFacts device = worker.hello.device;
    device.device_class =
        IsOwnClass(device_class, key, worker) ? device_class : ClassOf(key, worker);
    if (!device_class.empty() && device.device_class != device_class) continue;
    if (!CanRun(device, target)) continue;
    if (!worker.own_class || !device_class.empty()) return device;
    // One that has drifted only where there is no other.
    if (!drifted) drifted = std::move(device);
  }
  return drifted;
}

int Farm::CapacityFor(const Hash128& id) const {
  const auto session = sessions_.find(id);
  if (session == sessions_.end()) return kLeastCapacity;
  int64_t capacity = 0;
  for (const auto& [key, worker] : workers_) {
    if (!worker.stream || !MayRun(key, worker, session->second)) continue;
    capacity += RoomOf(worker) + static_cast<int64_t>(worker.leases.size());
  }
  // All share the devices; candidates that wait long were chosen knowing little. A session
  // with nothing left to ask for leaves its part to others.
  const int64_t sharers = std::ranges::count_if(sessions_, [&](const auto& item) {
    const Session& other = item.second;
    return item.first == id || (other.begun && (other.leased > 0 || !other.waiting.empty()) &&
                                other.terms.device_class == session->second.terms.device_class);
  });
  return static_cast<int>(std::clamp<int64_t>(capacity / sharers, kLeastCapacity, kMostCapacity));
}

std::vector<proto::DeviceInfo> Farm::Devices(int64_t now_ns) const {
  std::vector<proto::DeviceInfo> devices;
  for (const auto& [key, worker] : workers_) {
    devices.push_back({.worker = worker.name,
                       .device = worker.hello.device,
                       .state = worker.device,
                       .reason = !worker.reason.empty()  ? worker.reason
                                 : !worker.drift.empty() ? worker.drift
                                                         : worker.unlike,
                       .connected = worker.stream.has_value(),
                       .sandboxed = worker.hello.sandboxed,
                       .leases = static_cast<int>(worker.leases.size()),
                       .busy_ns = worker.busy_ns,
                       .results = worker.results,
                       .probes = worker.hello.probes,
                       .program_version = worker.hello.program_version,
                       .labels = worker.hello.labels,
                       .since_ms = std::max<int64_t>(now_ns - worker.link_ns, 0) / kNsPerMs});
    if (worker.hello.protocol == 0) continue;  // it was not here since the start
    devices.back().role = worker.hello.role;
    std::string& reason = devices.back().reason;
    if (reason.empty()) reason = MissingPartner(worker);
    const std::string& gap = worker.hello.sandbox_gap;
    if (!gap.empty()) reason += (reason.empty() ? "" : "; ") + gap;
  }
  return devices;
}

int64_t Farm::waiting() const {
  int64_t n = 0;
  for (const auto& [id, session] : sessions_) n += static_cast<int64_t>(session.waiting.size());
  return n;
}

int64_t Farm::charged_ns(const std::string& project) const {
  const auto found = projects_.find(project);
  return found == projects_.end() ? 0 : found->second.charged_ns;
}

}  // namespace hone::server
