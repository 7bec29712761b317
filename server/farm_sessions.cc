#include <utility>

#include "fmt/format.h"

#include "base/status.h"
#include "server/device_match.h"
#include "server/farm.h"

// What sessions and operators ask of a Farm.
namespace hone::server {
namespace {

absl::Status WrongState(const std::string& worker, const std::string& device, DeviceState state) {
  return absl::FailedPreconditionError(
      fmt::format("device {} of '{}' is {}", device, worker, NameOf(state)));
}

}  // namespace

absl::Status Farm::SetUnseen(const std::string& name, const std::string& device,
                             DeviceTrigger event, const std::string& reason) {
  const auto known = known_devices_.find(name + "/" + device);
  if (known == known_devices_.end()) {
    return absl::NotFoundError(fmt::format("no worker '{}' with device {} was seen", name, device));
  }
  db::FarmDevice& row = known->second;
  if (!Next(row.state, event)) return WrongState(name, device, row.state);
  Move(row.state, event);
  if (row.state == DeviceState::kDraining) Move(row.state, DeviceTrigger::kEmptied);
  row.reason = row.state == DeviceState::kActive ? "" : reason;
  step_.changes.push_back(db::PutFarmDevice{row});
  return absl::OkStatus();
}

absl::Status Farm::SetDevice(const std::string& name, const std::string& device,
                             DeviceTrigger event, const std::string& reason, int64_t now_ns) {
  const auto known = workers_.find(name + "/" + device);
  if (known == workers_.end()) return SetUnseen(name, device, event, reason);
  Worker& worker = known->second;
  if (!Next(worker.device, event)) return WrongState(name, device, worker.device);
  if (event == DeviceTrigger::kUndrain) HONE_RETURN_IF_ERROR(MayComeBack(worker));
  Move(worker.device, event);
  if (worker.device == DeviceState::kActive) {
    worker.failed_candidates.clear();
    worker.lost_in_row.clear();
  }
  if (worker.device == DeviceState::kDraining && worker.leases.empty()) {
    Move(worker.device, DeviceTrigger::kEmptied);
  }
  worker.reason = worker.device == DeviceState::kActive ? "" : reason;
  db::FarmDevice row{name, device, worker.device, worker.reason};
  known_devices_[known->first] = row;
  hungry_.insert(known->first);
  step_.changes.push_back(db::PutFarmDevice{std::move(row)});
  CompareProbes(worker.hello.device.device_class);
  GrantAll(now_ns);
  return absl::OkStatus();
}

std::function<void(Farm&)> Farm::Remember(const std::string& name,
                                          const std::string& device) const {
  const std::string key = name + "/" + device;
  std::optional<db::FarmDevice> row;
  if (const auto known = known_devices_.find(key); known != known_devices_.end()) {
    row = known->second;
  }
  std::optional<Worker> before;
  if (const auto known = workers_.find(key); known != workers_.end()) before = known->second;
  return [key, row, before](Farm& farm) {
    if (row) {
      farm.known_devices_[key] = *row;
    } else {
      farm.known_devices_.erase(key);
    }
    if (!before) return;
    Worker& worker = farm.workers_.at(key);
    worker.device = before->device;
    worker.reason = before->reason;
    worker.failed_candidates = before->failed_candidates;
    worker.lost_in_row = before->lost_in_row;
    worker.probe_asked = before->probe_asked;
    farm.CompareProbes(worker.hello.device.device_class);
  };
}

void Farm::BeginSession(const SessionTerms& terms) {
  Session& session = sessions_[terms.id];
  // Those of an earlier start stand where its row said.
  const int64_t leased = session.leased;
  if (leased > 0) CountLeases(session, -leased);
  session.terms = terms;
  session.target = TargetOf(terms.target);
  session.begun = true;
  CountLeases(session, leased);
}

void Farm::SetDeadline(const Hash128& id, int64_t deadline_ns) {
  const auto session = sessions_.find(id);
  if (session != sessions_.end()) session->second.deadline_ns = deadline_ns;
}

void Farm::Revoke(const Hash128& token, const std::string& why, int64_t now_ns) {
  const auto worker = workers_.find(leases_.at(token).worker);
  if (worker != workers_.end()) Send(worker->second, proto::Revoke{token, why});
  ++counters_.revoked;
  EndLease(token, LeaseTrigger::kRevoke, Blame::kNobody, why, now_ns);
}

void Farm::StopAtDeadline(const Hash128& id, Session& session, int64_t now_ns) {
  constexpr char kOver[] = "the session's time is over";
  for (auto& [number, attempt] : session.attempts) {
    if (attempt.state == AttemptState::kLeased && !HasAnswer(leases_.at(attempt.token))) {
      Revoke(attempt.token, kOver, now_ns);
    }
    if (attempt.state != AttemptState::kWaiting || !attempt.job) continue;
    Unwait(session, number);
    AnswerFor(id, number, attempt, {.outcome = measure::Outcome::kWorkerLost, .message = kOver});
  }
}

int64_t Farm::DropWaiting(const Hash128& id, int64_t below, int64_t now_ns) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return 0;
  Session& session = found->second;
  int64_t dropped = 0;
  for (auto it = session.attempts.begin(); it != session.attempts.end() && it->first < below;) {
    Attempt& attempt = it->second;
    if (attempt.state == AttemptState::kLeased &&
        leases_.at(attempt.token).state == LeaseState::kGranted &&
        !HasAnswer(leases_.at(attempt.token))) {
      Revoke(attempt.token, "the session's search has ended", now_ns);
    }
    if (attempt.state != AttemptState::kWaiting || !attempt.job) {
      ++it;
      continue;
    }
    Move(attempt.state, AttemptTrigger::kDrop);
    Unwait(session, it->first);
    it = session.attempts.erase(it);
    ++dropped;
  }
  GrantAll(now_ns);
  return dropped;
}

void Farm::EndSession(const Hash128& id, const std::string& reason, int64_t now_ns) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  for (auto& [number, attempt] : found->second.attempts) {
    const auto open = leases_.find(attempt.token);
    if (open != leases_.end()) {
      Lease& lease = open->second;
      Move(lease.state, LeaseTrigger::kRevoke);
      ++counters_.revoked;
      step_.changes.push_back(
          db::EndFarmLease{.token = attempt.token, .state = LeaseState::kRevoked});
      if (Worker* worker = ForgetLease(lease.worker, attempt.token)) {
        Send(*worker, proto::Revoke{attempt.token, reason});
      }
      CountLeases(found->second, -1);
      leases_.erase(open);
    }
    Move(attempt.state, AttemptTrigger::kDrop);
  }
  sessions_.erase(found);
  GrantAll(now_ns);
}

void Farm::Submit(const Hash128& id, int64_t number, proto::Job job, const Hints& hints,
                  int64_t now_ns) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || !found->second.begun) return;  // it was ended meanwhile
  Session& session = found->second;
  Attempt& attempt = session.attempts[number];
  if (attempt.job) return;
  attempt.job = std::move(job);
  attempt.hints = hints;
  Wake(session);
  if (attempt.state == AttemptState::kWaiting) {
    if (attempt.condemned) {
      Condemn(id, number, attempt);
    } else {
      Wait(session, number, attempt, now_ns);
    }
  }
  JudgeParked(attempt.token, now_ns);
  Deliver(id, number, attempt);
  if (now_ns >= session.deadline_ns) StopAtDeadline(id, session, now_ns);
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
    Move(attempt.state, AttemptTrigger::kCommit);
    if (attempt.result) ++counters_.outcomes[static_cast<size_t>(attempt.result->outcome)];
    const auto open = leases_.find(attempt.token);
    if (open != leases_.end()) {
      Lease& lease = open->second;
      Move(lease.state, LeaseTrigger::kCommit);
      ++counters_.acknowledged;
      Charge(session, lease.charge_ns, true);
      ClassUse& use = UseOf(session);
      use.mean_run_ns = 0.9 * use.mean_run_ns + 0.1 * static_cast<double>(lease.charge_ns);
      CountLeases(session, -1);
      if (KindOf(attempt.token) == proto::LeaseKind::kBuild) --session.building;
      Worker* const worker = ForgetLease(lease.worker, attempt.token);
      // To another process of that name it says nothing.
      if (worker != nullptr && worker->hello.instance == lease.instance) {
        Send(*worker, proto::Acknowledgement{attempt.token, proto::Verdict::kAccepted});
      }
      leases_.erase(open);
    }
    session.attempts.erase(at);
  }
  GrantAll(now_ns);
}

}  // namespace hone::server
