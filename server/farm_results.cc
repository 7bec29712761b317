#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "base/log.h"
#include "proto/convert.h"
#include "server/farm.h"
#include "server/lease_time.h"

// Which answers a Farm takes, and what becomes of them.
namespace hone::server {
std::string Farm::WhyInvalid(const Lease& lease, const Attempt& attempt,
                             const proto::WorkResult& result, int64_t now_ns) const {
  if (KindOf(result.token) == proto::LeaseKind::kBuild) {
    if (!result.compared.empty()) return "times of what was to be built only";
    return IsOfBuilding(result.outcome) ? ""
                                        : fmt::format("'{}' of what was to be built only",
                                                      measure::ToString(result.outcome));
  }
  double sum_ns = 0;
  for (const int64_t ns : result.samples_ns) sum_ns += result.part * static_cast<double>(ns);
  for (const proto::ComparedResult& one : result.compared) {
    for (const int64_t ns : one.samples_ns) sum_ns += static_cast<double>(ns);
  }
  const int64_t most_ns = now_ns - lease.granted_ns + policy_.grace_ns;
  if (sum_ns > static_cast<double>(most_ns)) {
    return fmt::format("{:.1f} s of samples in a lease that is {:.1f} s old", sum_ns * 1e-9,
                       static_cast<double>(now_ns - lease.granted_ns) * 1e-9);
  }
  const bool comparison = attempt.job->kind != proto::JobKind::kScreen;
  const size_t wanted = comparison ? attempt.job->traces.size() : 0;
  if (result.compared.size() == wanted) return "";
  if (comparison && result.outcome != measure::Outcome::kOk) return "";
  return fmt::format("{} compared traces, {} were asked for", result.compared.size(), wanted);
}

void Farm::OnOldResult(StreamId stream, const proto::WorkResult& result) {
  proto::Acknowledgement ack{.token = result.token, .verdict = proto::Verdict::kStale};
  const std::optional<db::FarmLease> ended = ended_.FindLease(result.token);
  if (!ended) {
    ack.reason = "no such lease was ever granted here";
    ++counters_.stale;
  } else if (ended->state != LeaseState::kDone) {
    ack.reason = fmt::format("the lease was {}", NameOf(ended->state));
    ++counters_.stale;
  } else if (ended->content == proto::ResultDigest(result)) {
    ack.verdict = proto::Verdict::kAccepted;
    ++counters_.duplicates;
  } else {
    ack.verdict = proto::Verdict::kConflict;
    ack.reason = "this lease was answered with other content";
    ++counters_.conflicts;
  }
  Outgoing& out = step_.messages.emplace_back();
  out.stream = stream;
  out.message = std::move(ack);
}

bool Farm::CountResult(Worker& worker) {
  ++counters_.results;
  if (++worker.results_received <= worker.results_allowed) return true;
  CloseStream(worker, absl::InvalidArgumentError(
                          fmt::format("more results than its credit of {}: the worker must wait "
                                      "for ServerCredit",
                                      worker.results_allowed)));
  Move(worker.state, WorkerTrigger::kDisconnect);
  return false;
}

void Farm::RenewCredit(Worker& worker) {
  // By the clock, not by what came: otherwise nobody could send too much.
  const int64_t left = worker.results_allowed - worker.results_received;
  if (worker.stream && left <= policy_.result_window / 2) SendCredit(worker);
}

bool Farm::PauseAfterFault(Attempt& attempt, const std::string& key, int64_t now_ns) {
  if (attempt.faults >= policy_.max_faults) return false;
  ++counters_.infrastructure_faults;
  attempt.avoid.insert(key);
  attempt.not_before_ns = now_ns + (policy_.first_pause_ns << attempt.faults);
  ++attempt.faults;
  return true;
}

void Farm::OnReturned(const std::string& key, const proto::Returned& returned, int64_t now_ns) {
  const auto found = leases_.find(returned.token);
  if (found == leases_.end() || found->second.worker != key || HasAnswer(found->second)) {
    return;
  }
  ++counters_.returned;
  const Lease& lease = found->second;
  Attempt& attempt = sessions_.at(lease.session).attempts.at(lease.attempt);
  // What has not run goes back unblamed. What has, and has no answer, would come back for ever.
  if (lease.state == LeaseState::kStarted && !PauseAfterFault(attempt, key, now_ns)) {
    return GiveUp(returned.token, returned.reason, now_ns);
  }
  EndLease(returned.token, LeaseTrigger::kGiveBack, Blame::kNobody, returned.reason, now_ns);
}

void Farm::OnResult(Worker& worker, const proto::WorkResult& result, int64_t now_ns) {
  if (!CountResult(worker)) return;
  const auto open = leases_.find(result.token);
  if (open == leases_.end()) return OnOldResult(*worker.stream, result);
  Lease& lease = open->second;
  if (lease.worker != worker.name + "/" + worker.hello.device.name) {
    ++counters_.invalid;
    return Send(worker, proto::Acknowledgement{result.token, proto::Verdict::kInvalid,
                                               "this lease is another worker's"});
  }
  std::string digest = proto::ResultDigest(result);
  if (HasAnswer(lease)) {
    // The first answer comes with its commit.
    if (lease.content == digest) {
      ++counters_.duplicates;
      return;
    }
    ++counters_.conflicts;
    return Send(worker, proto::Acknowledgement{result.token, proto::Verdict::kConflict,
                                               "this lease was answered with other content"});
  }
  lease.content = std::move(digest);
  if (!sessions_.at(lease.session).attempts.at(lease.attempt).job) {
    // honed was started again, and the session's driver still replays.
    lease.parked = result;
    lease.parked_ns = now_ns;
    return;
  }
  Judge(lease, result, now_ns);
}

void Farm::JudgeParked(const Hash128& token, int64_t now_ns) {
  const auto open = leases_.find(token);
  if (open == leases_.end() || !open->second.parked) return;
  Lease& lease = open->second;
  // The device was not busy with it while it was parked; what was excused meanwhile is in already.
  lease.since_ns = std::min(now_ns, lease.since_ns + now_ns - lease.parked_ns);
  lease.granted_ns = std::min(now_ns, lease.granted_ns + now_ns - lease.parked_ns);
  const proto::WorkResult result = *std::exchange(lease.parked, std::nullopt);
  Judge(lease, result, now_ns);
}

void Farm::Judge(Lease& lease, const proto::WorkResult& result, int64_t now_ns) {
  const std::string key = lease.worker;
  Worker& worker = workers_.at(key);
  // To another process of that name it says nothing.
  const bool same = worker.hello.instance == lease.instance;
  const auto answer = [&](proto::Verdict verdict, std::string reason) {
    if (same) Send(worker, proto::Acknowledgement{result.token, verdict, std::move(reason)});
  };
  Attempt& attempt = sessions_.at(lease.session).attempts.at(lease.attempt);
  const bool build = KindOf(result.token) == proto::LeaseKind::kBuild;
  if (std::string why = WhyInvalid(lease, attempt, result, now_ns); !why.empty()) {
    ++counters_.invalid;
    answer(proto::Verdict::kInvalid, why);
    if (build) return BuildFault(result.token, why, now_ns);
    if (!PauseAfterFault(attempt, key, now_ns)) return GiveUp(result.token, why, now_ns);
    return EndLease(result.token, LeaseTrigger::kGiveBack, Blame::kNobody, why, now_ns);
  }
  if (result.outcome == measure::Outcome::kWorkerLost && PauseAfterFault(attempt, key, now_ns)) {
    // Not the candidate's doing: elsewhere, later, at nobody's cost.
    answer(proto::Verdict::kStale, "a fault of the worker; it will be measured again");
    return EndLease(result.token, LeaseTrigger::kGiveBack, Blame::kNobody, result.message, now_ns);
  }
  const Belief belief = build ? Belief::kCounts : Believe(key, lease, result, now_ns);
  if (belief == Belief::kElsewhere) {
    answer(proto::Verdict::kStale, "it is measured on another device before it counts");
    // Unless the device was quarantined over it, and the lease is revoked already.
    if (!leases_.contains(result.token)) return;
    return EndLease(result.token, LeaseTrigger::kGiveBack, Blame::kNobody,
                    "to be measured on another device", now_ns);
  }
  Move(lease.state, LeaseTrigger::kAnswer);
  Move(attempt.state, AttemptTrigger::kAnswer);
  lease.since_ns = now_ns;
  const bool free = build || result.outcome == measure::Outcome::kWorkerLost;
  // Its worker's word, as far as there was time for it.
  const int64_t most_ns = MostNs(lease, now_ns);
  const int64_t cores = std::max(1, worker.hello.device.cores);
  attempt.result = result;
  attempt.result->run_ns = std::min(result.run_ns, most_ns);
  attempt.result->build_ns = std::min(result.build_ns, most_ns * cores) + attempt.build_ns;
  lease.charge_ns = free ? 0 : attempt.result->run_ns;
  ++worker.results;
  if (!build) worker.meter.Result(result.samples_ns, result.noisy);
  // Nobody else can measure it: it counts, and says that it is doubtful.
  attempt.result->noisy |= belief == Belief::kUnconfirmed;
  Deliver(lease.session, lease.attempt, attempt);
  // Last: it may take leases back.
  if (!build) JudgeDevices(key, attempt, result, now_ns);
}

void Farm::Deliver(const Hash128& session, int64_t number, Attempt& attempt) {
  if (!attempt.job || !attempt.result || attempt.delivered) return;
  attempt.delivered = true;
  step_.deliveries.push_back({session, number, *attempt.result});
}

void Farm::Condemn(const Hash128& session, int64_t number, Attempt& attempt) {
  LogEvent(LogLevel::kInfo, "attempt_condemned",
           {{"session", session.ToHex()}, {"attempt", number}, {"why", attempt.condemned_why}});
  AnswerFor(session, number, attempt,
            {.outcome = measure::Outcome::kRunCrashed, .message = attempt.condemned_why});
}

void Farm::AnswerFor(const Hash128& session, int64_t number, Attempt& attempt,
                     proto::WorkResult result) {
  Move(attempt.state, AttemptTrigger::kCondemn);
  attempt.token = {};
  attempt.result = std::move(result);
  Deliver(session, number, attempt);
}

}  // namespace hone::server
