#include <algorithm>
#include <limits>

#include "base/log.h"
#include "proto/limits.h"
#include "server/device_match.h"
#include "server/farm.h"

// Who gets what next, and what can be seen of a Farm.
namespace hone::server {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
/// What a lease under way counts for its project until its charge is known.
constexpr int64_t kNominalRunNs = 50'000'000;
constexpr int kLeastCapacity = 8;
constexpr int kMostCapacity = 4096;

}  // namespace

bool Farm::MayRun(const Worker& worker, const Session& session) const {
  return session.begun && worker.hello.device.device_class == session.plan.device_class &&
         CanRun(worker.hello.device, session.plan.target);
}

Farm::Session* Farm::PickSession(const Worker& worker, int64_t now_ns, int64_t* attempt) {
  Session* best = nullptr;
  double best_use = std::numeric_limits<double>::infinity();
  const bool idle = worker.leases.empty();
  for (auto& [id, session] : sessions_) {
    if (session.waiting.empty() || !MayRun(worker, session)) continue;
    const Project& project = projects_.at(session.plan.project);
    const double use = static_cast<double>(project.charged_ns + project.leased * kNominalRunNs) /
                       static_cast<double>(project.share);
    if (best != nullptr) {
      const bool same = best->plan.project == session.plan.project;
      if (!same && use >= best_use) continue;
      if (same && session.plan.priority < best->plan.priority) continue;
      if (same && session.plan.priority == best->plan.priority && session.leased >= best->leased) {
        continue;
      }
    }
    for (const int64_t number : session.waiting) {
      const Attempt& a = session.attempts.at(number);
      if (a.not_before_ns > now_ns || (a.losses > 0 && !idle)) continue;
      best = &session;
      best_use = use;
      *attempt = number;
      break;
    }
  }
  return best;
}

bool Farm::GrantOne(const std::string& key, Worker& worker, int64_t now_ns) {
  int64_t number = 0;
  Session* session = PickSession(worker, now_ns, &number);
  if (session == nullptr) return false;
  Attempt& attempt = session->attempts.at(number);
  session->waiting.erase(number);
  Move(attempt.state, AttemptEvent::kGrant);
  attempt.token = {start_, ++tokens_};
  leases_[attempt.token] = {.session = session->plan.id,
                            .attempt = number,
                            .worker = key,
                            .instance = worker.hello.instance,
                            .since_ns = now_ns,
                            .alone = attempt.losses > 0};
  worker.leases.insert(attempt.token);
  ++worker.leases_sent;
  ++session->leased;
  ++projects_[session->plan.project].leased;
  ++counters_.granted;
  LogEvent(LogLevel::kDebug, "lease_granted",
           {{"session", session->plan.id.ToHex()},
            {"attempt", number},
            {"lease", attempt.token.ToHex()},
            {"worker", key}});
  step_.changes.push_back(db::AddFarmLease{{.token = attempt.token,
                                            .session = session->plan.id,
                                            .attempt = number,
                                            .worker = worker.name,
                                            .device = worker.hello.device.name,
                                            .instance = worker.hello.instance}});
  Send(worker, proto::Grant{.token = attempt.token,
                            .session = session->plan.id,
                            .attempt = number,
                            .job = *attempt.job,
                            .start_by_ms = (policy_.start_by_ns - policy_.grace_ns) / kNsPerMs,
                            .run_by_ms = (policy_.run_by_ns - policy_.grace_ns) / kNsPerMs});
  return true;
}

void Farm::GrantAll(int64_t now_ns) {
  // One each in turn, so that devices fill evenly.
  for (bool granted = true; granted;) {
    granted = false;
    for (auto& [key, worker] : workers_) {
      if (!worker.stream || worker.state != WorkerState::kConnected ||
          worker.device != DeviceState::kActive || worker.leases_sent >= worker.leases_allowed ||
          worker.leases.size() >= proto::kMaxHeld) {
        continue;
      }
      // A suspect runs alone.
      const bool alone = std::ranges::any_of(
          worker.leases, [&](const Hash128& token) { return leases_.at(token).alone; });
      if (!alone) granted |= GrantOne(key, worker, now_ns);
    }
  }
}

std::optional<proto::DeviceFacts> Farm::FindDevice(const std::string& target,
                                                   const std::string& device_class) const {
  for (const auto& [key, worker] : workers_) {
    const proto::DeviceFacts& device = worker.hello.device;
    if (worker.state != WorkerState::kConnected || worker.device != DeviceState::kActive) continue;
    if (!device_class.empty() && device.device_class != device_class) continue;
    if (CanRun(device, target)) return device;
  }
  return std::nullopt;
}

int Farm::CapacityFor(const Hash128& id) const {
  const auto session = sessions_.find(id);
  if (session == sessions_.end()) return kLeastCapacity;
  int64_t capacity = 0;
  for (const auto& [key, worker] : workers_) {
    if (!worker.stream || !MayRun(worker, session->second)) continue;
    capacity +=
        worker.leases_allowed - worker.leases_sent + static_cast<int64_t>(worker.leases.size());
  }
  return static_cast<int>(std::clamp<int64_t>(capacity, kLeastCapacity, kMostCapacity));
}

std::vector<proto::DeviceInfo> Farm::Devices() const {
  std::vector<proto::DeviceInfo> devices;
  for (const auto& [key, worker] : workers_) {
    devices.push_back({.worker = worker.name,
                       .device = worker.hello.device,
                       .state = worker.device,
                       .reason = worker.reason,
                       .connected = worker.stream.has_value(),
                       .sandboxed = worker.hello.sandboxed,
                       .leases = static_cast<int>(worker.leases.size()),
                       .busy_ns = worker.busy_ns,
                       .results = worker.results});
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
