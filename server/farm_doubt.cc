#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "base/log.h"
#include "server/farm.h"

// Which answers and which devices a Farm believes. An answer that may be the device's doing is
// measured on another one before it counts: the candidate's failure, and a time that is too good.
namespace hone::server {
namespace {

/// Failures in which the machine may have a part; illegal and unbuildable candidates are the same
/// everywhere.
bool MayBeTheDevice(measure::Outcome outcome) {
  switch (outcome) {
    case measure::Outcome::kRunCrashed:
    case measure::Outcome::kRunTimeout:
    case measure::Outcome::kOutOfMemory:
    case measure::Outcome::kWrongAnswer: return true;
    default: return false;
  }
}

double Median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return static_cast<double>(values[(values.size() - 1) / 2]);
}

}  // namespace

Hash128 Farm::CandidateOf(const proto::Job& job, size_t trace) {
  return HashBytes(job.workload + "\n" + job.target + "\n" + job.traces.at(trace));
}

std::string Farm::WhyTooFast(const std::string& key, const Attempt& attempt,
                             const proto::WorkResult& result) const {
  const double fastest_ns = FastestNs(key, attempt.hints);
  // The least sample: records rank by the lower end of their interval, which is no lower.
  const auto why = [&](measure::Outcome outcome, const std::vector<int64_t>& samples_ns) {
    if (outcome != measure::Outcome::kOk || samples_ns.empty()) return std::string();
    const auto least_ns = static_cast<double>(*std::ranges::min_element(samples_ns));
    if (least_ns * policy_.fast_margin >= fastest_ns) return std::string();
    return fmt::format("{:.0f} ns, where {:.0f} ns are possible", least_ns, fastest_ns);
  };
  for (const proto::ComparedResult& one : result.compared) {
    if (std::string text = why(one.outcome, one.samples_ns); !text.empty()) return text;
  }
  return why(result.outcome, result.samples_ns);
}

std::string Farm::WhyAtFault(const std::string& key, const Attempt& attempt,
                             const proto::WorkResult& result, int64_t now_ns) {
  std::string why;
  if (attempt.job->kind != proto::JobKind::kScreen) {
    // One device decides between finalists: a device that fails on one that ran well elsewhere
    // decides nothing.
    for (size_t i = 0; i < result.compared.size() && i < attempt.job->traces.size(); ++i) {
      const Hash128 candidate = CandidateOf(*attempt.job, i);
      const std::string* good = good_.FirstDevice(candidate);
      if (!MayBeTheDevice(result.compared[i].outcome) || good == nullptr || *good == key) continue;
      why = fmt::format("{} on what runs on '{}'", measure::ToString(result.compared[i].outcome),
                        *good);
      CountFault(key, candidate, why, now_ns);
    }
  } else if (MayBeTheDevice(result.outcome)) {
    why = std::string(measure::ToString(result.outcome));
  }
  return why;
}

Farm::Belief Farm::Believe(const std::string& key, const Lease& lease,
                           const proto::WorkResult& result, int64_t now_ns) {
  const Session& session = sessions_.at(lease.session);
  Attempt& attempt = sessions_.at(lease.session).attempts.at(lease.attempt);
  const FarmDoubt doubt{lease.session, lease.attempt, now_ns};
  std::string why = WhyTooFast(key, attempt, result);
  const bool too_fast = !why.empty();
  if (too_fast) {
    if (attempt.too_fast && attempt.doubted != key) return Belief::kCounts;  // both say so
    // Also one that had a fault of its own with it: nobody but another device can confirm it. Not
    // one that was lost with it: a second loss would condemn what ran well here.
    if (!OthersCanRun(key, session, {attempt.lost_with})) return Belief::kUnconfirmed;
  } else {
    // Confirmed or not: a second device's answer counts.
    if (attempt.doubtful || !OthersCanRun(key, session, attempt.avoid)) return Belief::kCounts;
    why = WhyAtFault(key, attempt, result, now_ns);
    if (why.empty()) return Belief::kCounts;
  }
  LogInfo("an answer of '{}' ({}) is measured again elsewhere before it counts", key, why);
  ++counters_.held_back;
  attempt.doubtful = result;
  attempt.doubted = key;
  attempt.too_fast = too_fast;
  attempt.avoid.insert(key);
  if (too_fast) doubts_.push_back(doubt);
  return Belief::kElsewhere;
}

bool Farm::MayConfirm(const std::string& key, const Attempt& attempt) {
  return !attempt.too_fast || (attempt.doubted != key && attempt.lost_with != key);
}

void Farm::SettleDoubts(int64_t now_ns) {
  while (!doubts_.empty() && now_ns - doubts_.front().since_ns > policy_.doubt_ns) {
    const FarmDoubt doubt = doubts_.front();
    doubts_.pop_front();
    const auto session = sessions_.find(doubt.session);
    if (session == sessions_.end()) continue;
    const auto at = session->second.attempts.find(doubt.attempt);
    if (at == session->second.attempts.end() || !at->second.too_fast) continue;
    Attempt& attempt = at->second;
    if (attempt.state == AttemptState::kLeased) {
      // Somebody has it; should that come to nothing, it has waited long enough the next time.
      doubts_.push_back({doubt.session, doubt.attempt, now_ns});
    }
    if (attempt.state != AttemptState::kWaiting) continue;
    Unwait(session->second, doubt.attempt);
    proto::WorkResult result = *attempt.doubtful;
    result.token = {};
    result.noisy = true;
    AnswerFor(doubt.session, doubt.attempt, attempt, std::move(result));
  }
}

void Farm::JudgeDevices(const std::string& key, Attempt& attempt, const proto::WorkResult& result,
                        int64_t now_ns) {
  const bool screen = attempt.job->kind == proto::JobKind::kScreen;
  const bool ok = result.outcome == measure::Outcome::kOk;
  if (ok && screen) good_.Add(CandidateOf(*attempt.job, 0), key);
  if (ok) {
    if (attempt.losses > 0) JudgeLoss(key, attempt, now_ns);
    Worker& worker = workers_.at(key);
    ++worker.good_answers;
    worker.lost_in_row.clear();
  }
  if (!attempt.doubtful || attempt.doubted == key || !ok) return;
  const proto::WorkResult& first = *attempt.doubtful;
  const auto judge_times = [&](size_t trace, const auto& before_ns, const auto& now_takes_ns) {
    if (before_ns.empty() || Median(before_ns) * policy_.unlike_ratio >= Median(now_takes_ns)) {
      return;
    }
    CountFault(attempt.doubted, CandidateOf(*attempt.job, trace),
               fmt::format("{:.0f} ns on what takes '{}' {:.0f} ns", Median(before_ns), key,
                           Median(now_takes_ns)),
               now_ns);
  };
  if (!screen) {
    const size_t traces = std::min(first.compared.size(), result.compared.size());
    for (size_t i = 0; i < traces; ++i) {
      judge_times(i, first.compared[i].samples_ns, result.compared[i].samples_ns);
    }
  } else if (first.outcome == measure::Outcome::kOk) {
    judge_times(0, first.samples_ns, result.samples_ns);
  } else {
    CountFault(attempt.doubted, CandidateOf(*attempt.job, 0),
               fmt::format("{} ({}) on what runs on '{}'", measure::ToString(first.outcome),
                           first.message, key),
               now_ns);
  }
}

void Farm::CountFault(const std::string& key, const Hash128& candidate, const std::string& why,
                      int64_t now_ns) {
  const auto found = workers_.find(key);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  worker.failed_candidates.insert(candidate);
  LogWarning("device '{}' is at fault: {}", key, why);
  if (static_cast<int>(worker.failed_candidates.size()) < policy_.max_device_faults) return;
  Quarantine(worker,
             fmt::format("{} candidates that are good elsewhere failed, last: {}",
                         worker.failed_candidates.size(), why),
             now_ns);
}

void Farm::Quarantine(Worker& worker, std::string cause, int64_t now_ns) {
  if (!Next(worker.device, DeviceTrigger::kQuarantine)) return;
  TakeOut(worker, DeviceTrigger::kQuarantine, "quarantine", std::move(cause));
  ++counters_.quarantined;
  LogEvent(LogLevel::kError, "device_quarantined",
           {{"worker", worker.name}, {"device", worker.hello.device.name}, {"why", worker.reason}});
  // What it holds goes elsewhere; what it has answered counts.
  const std::set<Hash128> leases = worker.leases;
  for (const Hash128& token : leases) {
    if (HasAnswer(leases_.at(token))) continue;
    Revoke(token, "the device is quarantined", now_ns);
  }
}

void Farm::TakeOut(Worker& worker, DeviceTrigger event, std::string action, std::string reason) {
  Move(worker.device, event);
  worker.reason = std::move(reason);
  const std::string key = worker.name + "/" + worker.hello.device.name;
  const db::FarmDevice row{worker.name, worker.hello.device.name, worker.device, worker.reason};
  known_devices_[key] = row;
  step_.changes.push_back(db::PutFarmDevice{row});
  AddAudit(std::move(action), key, worker.reason);
  CompareProbes(worker.hello.device.device_class);
}

void Farm::OnDeviceLost(Worker& worker, const proto::DeviceLost& lost, int64_t now_ns) {
  worker.lost_instance = worker.hello.instance;
  worker.probe_asked = false;
  if (Next(worker.device, DeviceTrigger::kLose)) {
    TakeOut(worker, DeviceTrigger::kLose, "lost", lost.reason);
    LogEvent(LogLevel::kError, "device_lost",
             {{"worker", worker.name}, {"device", worker.hello.device.name}, {"why", lost.reason}});
  }
  constexpr char kWhy[] = "its device is lost";
  const std::set<Hash128> leases = worker.leases;
  for (const Hash128& token : leases) {
    if (HasAnswer(leases_.at(token))) continue;  // it counts
    const LeaseState state = leases_.at(token).state;
    // One of these is what the child does not end over: as with a worker that died of it.
    if (state == LeaseState::kStarted || KindOf(token) == proto::LeaseKind::kBuild) {
      Send(worker, proto::Revoke{token, kWhy});
      EndLease(token, LeaseTrigger::kLose, Blame::kCandidate, kWhy, now_ns);
    } else {
      Revoke(token, kWhy, now_ns);
    }
  }
}

absl::Status Farm::MayComeBack(const Worker& worker) const {
  if (!worker.stream || worker.lost_instance != worker.hello.instance) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("device {} of '{}' stays lost while this process of its worker runs: {}",
                  worker.hello.device.name, worker.name, worker.reason));
}

void Farm::AddAudit(std::string action, std::string subject, std::string detail) {
  step_.changes.push_back(
      db::FarmAudit{.at_ms = wall_clock_ == nullptr ? 0 : wall_clock_->UnixNs() / 1'000'000,
                    .actor = "honed",
                    .action = std::move(action),
                    .subject = std::move(subject),
                    .detail = std::move(detail)});
}

std::string Farm::ClassOf(const std::string& key, const Worker& worker) const {
  const std::string& device_class = worker.hello.device.device_class;
  return worker.own_class ? fmt::format("{} as {}", device_class, key) : device_class;
}

void Farm::CompareSentinels() {
  std::map<std::string, std::vector<int64_t>> by_class;
  for (const auto& [key, worker] : workers_) {
    if (worker.stream && worker.sentinel_ns > 0)
      by_class[worker.hello.device.device_class].push_back(worker.sentinel_ns);
  }
  // The faster of two is the class: what disturbs a machine makes it slower.
  std::map<std::string, double> medians;
  for (auto& [name, sentinels_ns] : by_class) medians[name] = Median(std::move(sentinels_ns));
  for (auto& [key, worker] : workers_) {
    if (!worker.stream || worker.sentinel_ns == 0) continue;
    const double median = medians.at(worker.hello.device.device_class);
    const double off = static_cast<double>(worker.sentinel_ns) / median - 1;
    const bool drifted = std::abs(off) > policy_.most_drift;
    if (std::exchange(worker.own_class, drifted) == drifted) continue;
    worker.drift = drifted ? fmt::format(
                                 "its sentinel is {:.1f} % off its class's median: measured "
                                 "as a class of its own",
                                 100 * off)
                           : "";
    LogWarning("device '{}': {}", key, drifted ? worker.drift : "agrees with its class again");
  }
}

}  // namespace hone::server
