#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "server/farm.h"

// What sessions and operators ask of a Farm.
namespace hone::server {

absl::Status Farm::SetDevice(const std::string& name, const std::string& device, DeviceEvent event,
                             const std::string& reason, int64_t now_ns) {
  const auto known = workers_.find(name + "/" + device);
  if (known == workers_.end()) {
    return absl::NotFoundError(fmt::format("no worker '{}' with device {} was seen", name, device));
  }
  Worker& worker = known->second;
  if (!Next(worker.device, event)) {
    return absl::FailedPreconditionError(
        fmt::format("device {} of '{}' is {}", device, name, NameOf(worker.device)));
  }
  Move(worker.device, event);
  if (worker.device == DeviceState::kDraining && worker.leases.empty()) {
    Move(worker.device, DeviceEvent::kEmptied);
  }
  worker.reason = worker.device == DeviceState::kActive ? "" : reason;
  db::FarmDevice row{name, device, worker.device, worker.reason};
  known_devices_[known->first] = row;
  step_.changes.push_back(db::PutFarmDevice{std::move(row)});
  GrantAll(now_ns);
  return absl::OkStatus();
}

void Farm::BeginSession(const SessionPlan& plan) {
  Session& session = sessions_[plan.id];
  session.plan = plan;
  session.begun = true;
  projects_.try_emplace(plan.project);
}

void Farm::EndSession(const Hash128& id, const std::string& reason, int64_t now_ns) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  for (auto& [number, attempt] : found->second.attempts) {
    const auto open = leases_.find(attempt.token);
    if (open != leases_.end()) {
      Lease& lease = open->second;
      Move(lease.state, LeaseEvent::kRevoke);
      ++counters_.revoked;
      step_.changes.push_back(
          db::EndFarmLease{.token = attempt.token, .state = LeaseState::kRevoked});
      const auto worker = workers_.find(lease.worker);
      if (worker != workers_.end()) {
        worker->second.leases.erase(attempt.token);
        Send(worker->second, proto::Revoke{attempt.token, reason});
      }
      --projects_[found->second.plan.project].leased;
      leases_.erase(open);
    }
    Move(attempt.state, AttemptEvent::kDrop);
  }
  sessions_.erase(found);
  GrantAll(now_ns);
}

void Farm::Submit(const Hash128& id, int64_t number, proto::Job job, int64_t now_ns) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || !found->second.begun) return;  // it was ended meanwhile
  Session& session = found->second;
  Attempt& attempt = session.attempts[number];
  if (attempt.job) return;
  attempt.job = std::move(job);
  if (attempt.state == AttemptState::kWaiting) {
    if (attempt.condemned) {
      Condemn(id, number, attempt);
    } else {
      session.waiting.insert(number);
    }
  }
  Deliver(id, number, attempt);
  GrantAll(now_ns);
}

std::vector<db::FarmChange> Farm::EndsOf(const Hash128& id,
                                         const std::vector<int64_t>& attempts) const {
  std::vector<db::FarmChange> changes;
  const auto session = sessions_.find(id);
  if (session == sessions_.end()) return changes;
  for (const int64_t number : attempts) {
    const auto attempt = session->second.attempts.find(number);
    if (attempt == session->second.attempts.end()) continue;
    const auto lease = leases_.find(attempt->second.token);
    if (lease == leases_.end()) continue;
    changes.push_back(db::EndFarmLease{.token = lease->first,
                                       .state = LeaseState::kDone,
                                       .content = lease->second.content,
                                       .charge_ns = lease->second.charge_ns});
  }
  return changes;
}

void Farm::OnCommitted(const Hash128& id, const std::vector<int64_t>& attempts, int64_t now_ns) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Session& session = found->second;
  for (const int64_t number : attempts) {
    const auto at = session.attempts.find(number);
    if (at == session.attempts.end()) continue;
    Attempt& attempt = at->second;
    Move(attempt.state, AttemptEvent::kCommit);
    const auto open = leases_.find(attempt.token);
    if (open != leases_.end()) {
      Lease& lease = open->second;
      Move(lease.state, LeaseEvent::kCommit);
      ++counters_.acknowledged;
      Project& project = projects_[session.plan.project];
      project.charged_ns += lease.charge_ns;
      --project.leased;
      --session.leased;
      const auto worker = workers_.find(lease.worker);
      if (worker != workers_.end()) {
        worker->second.leases.erase(attempt.token);
      attempt.waiting_since_ns = now_ns;
        // To another process of that name it says nothing.
        if (worker->second.hello.instance == lease.instance) {
          Send(worker->second, proto::Acknowledgement{attempt.token, proto::Verdict::kAccepted});
        }
      }
      leases_.erase(open);
    }
    session.attempts.erase(at);
  }
  GrantAll(now_ns);
}

}  // namespace hone::server
    if (attempt.result) ++counters_.outcomes[static_cast<size_t>(attempt.result->outcome)];
