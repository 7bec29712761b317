#include <utility>

#include "fmt/format.h"

#include "base/log.h"
#include "proto/convert.h"
#include "server/farm.h"

// Which answers a Farm takes, and what becomes of them.
namespace hone::server {

std::string Farm::WhyInvalid(const Attempt& attempt, const proto::WorkResult& result) const {
  if (KindOf(result.token) == proto::LeaseKind::kBuild) {
    const bool ran = result.outcome == measure::Outcome::kOk || !result.compared.empty();
    return ran ? "times of what was to be built only" : "";
  }
  if (!attempt.job) return "";  // checked when the session's driver asks for it
  const bool comparison = attempt.job->kind == proto::JobKind::kCompare;
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

void Farm::CountResult(Worker& worker) {
  ++worker.results_received;
  ++counters_.results;
  if (worker.results_allowed - worker.results_received < policy_.result_window / 2) {
    SendCredit(worker);
  }
}

void Farm::OnResult(Worker& worker, const proto::WorkResult& result, int64_t now_ns) {
  CountResult(worker);
  const auto open = leases_.find(result.token);
  if (open == leases_.end()) return OnOldResult(*worker.stream, result);
  Lease& lease = open->second;
  const auto answer = [&](proto::Verdict verdict, std::string reason) {
    Send(worker, proto::Acknowledgement{result.token, verdict, std::move(reason)});
  };
  if (lease.worker != worker.name + "/" + worker.hello.device.name) {
    ++counters_.invalid;
    return answer(proto::Verdict::kInvalid, "this lease is another worker's");
  }
  std::string digest = proto::ResultDigest(result);
  if (lease.state == LeaseState::kAnswered) {
    // The first answer comes with its commit.
    if (lease.content == digest) {
      ++counters_.duplicates;
      return;
    }
    ++counters_.conflicts;
    return answer(proto::Verdict::kConflict, "this lease was answered with other content");
  }
  Attempt& attempt = sessions_.at(lease.session).attempts.at(lease.attempt);
  if (std::string why = WhyInvalid(attempt, result); !why.empty()) {
    ++counters_.invalid;
    answer(proto::Verdict::kInvalid, why);
    return EndLease(result.token, LeaseEvent::kGiveBack, Blame::kNobody, why, now_ns);
  }
  const std::string key = lease.worker;
  if (result.outcome == measure::Outcome::kWorkerLost && attempt.faults < policy_.max_faults) {
    // Not the candidate's doing: elsewhere, later, at nobody's cost.
    ++counters_.infrastructure_faults;
    attempt.avoid.insert(key);
    attempt.not_before_ns = now_ns + (policy_.first_pause_ns << attempt.faults);
    ++attempt.faults;
    answer(proto::Verdict::kStale, "a fault of the worker; it will be measured again");
    return EndLease(result.token, LeaseEvent::kGiveBack, Blame::kNobody, result.message, now_ns);
  }
  const bool build = KindOf(result.token) == proto::LeaseKind::kBuild;
  if (!build && OthersCanRun(key, sessions_.at(lease.session), attempt) &&
      HoldBack(key, attempt, result, now_ns)) {
    answer(proto::Verdict::kStale, "it is measured on another device before it counts");
    // Unless the device was quarantined over it, and the lease is revoked already.
    if (!leases_.contains(result.token)) return;
    return EndLease(result.token, LeaseEvent::kGiveBack, Blame::kNobody,
                    "to be measured on another device", now_ns);
  }
  Move(lease.state, LeaseEvent::kAnswer);
  Move(attempt.state, AttemptEvent::kAnswer);
  lease.since_ns = now_ns;
  lease.content = std::move(digest);
  const bool free = build || result.outcome == measure::Outcome::kWorkerLost;
  lease.charge_ns = free ? 0 : result.run_ns;
  ++worker.results;
  if (!build) worker.meter.Result(result.samples_ns, result.noisy);
  attempt.result = result;
  attempt.result->build_ns += attempt.build_ns;
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
  AnswerFor(session, number, attempt, measure::Outcome::kRunCrashed, attempt.condemned_why);
}

void Farm::AnswerFor(const Hash128& session, int64_t number, Attempt& attempt,
                     measure::Outcome outcome, const std::string& why) {
  Move(attempt.state, AttemptEvent::kCondemn);
  attempt.token = {};
  proto::WorkResult& result = attempt.result.emplace();
  result.outcome = outcome;
  result.message = why;
  Deliver(session, number, attempt);
}

}  // namespace hone::server
