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

constexpr size_t kMostGood = 1 << 18;  ///< candidates remembered

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

bool Farm::HoldBack(const std::string& key, Attempt& attempt, const proto::WorkResult& result,
                    int64_t now_ns) {
  // Confirmed or not: a second device's answer counts.
  if (!attempt.job || attempt.doubtful) return false;
  std::string why;
  if (attempt.job->kind == proto::JobKind::kCompare) {
    // One device decides between finalists: a device that fails on one that ran well elsewhere
    // decides nothing.
    for (size_t i = 0; i < result.compared.size() && i < attempt.job->traces.size(); ++i) {
      const Hash128 candidate = CandidateOf(*attempt.job, i);
      const auto good = good_.find(candidate);
      if (!MayBeTheDevice(result.compared[i].outcome) || good == good_.end() || good->second == key)
        continue;
      why = fmt::format("{} on what runs on '{}'", measure::ToString(result.compared[i].outcome),
                        good->second);
      Strike(key, candidate, why, now_ns);
    }
  } else if (MayBeTheDevice(result.outcome)) {
    why = std::string(measure::ToString(result.outcome));
  } else if (result.outcome == measure::Outcome::kOk) {
    const double fastest_ns = FastestNs(key, attempt.hints);
    if (Median(result.samples_ns) * policy_.fast_margin < fastest_ns) {
      why = fmt::format("{:.0f} ns, where {:.0f} ns are possible", Median(result.samples_ns),
                        fastest_ns);
    }
  }
  if (why.empty()) return false;
  LogInfo("an answer of '{}' ({}) is measured again elsewhere before it counts", key, why);
  ++counters_.held_back;
  attempt.doubtful = result;
  attempt.doubted = key;
  attempt.avoid.insert(key);
  return true;
}

void Farm::JudgeDevices(const std::string& key, Attempt& attempt, const proto::WorkResult& result,
                        int64_t now_ns) {
  if (!attempt.job || attempt.job->kind != proto::JobKind::kScreen) return;
  const Hash128 candidate = CandidateOf(*attempt.job, 0);
  const bool ok = result.outcome == measure::Outcome::kOk;
  if (ok) {
    if (good_.size() >= kMostGood) good_.clear();
    good_.emplace(candidate, key);
  }
  if (!attempt.doubtful || attempt.doubted == key || !ok) return;
  const proto::WorkResult& first = *attempt.doubtful;
  if (first.outcome != measure::Outcome::kOk) {
    Strike(attempt.doubted, candidate,
           fmt::format("{} ({}) on what runs on '{}'", measure::ToString(first.outcome),
                       first.message, key),
           now_ns);
  } else if (Median(first.samples_ns) * policy_.unlike_ratio < Median(result.samples_ns)) {
    Strike(attempt.doubted, candidate,
           fmt::format("{:.0f} ns on what takes '{}' {:.0f} ns", Median(first.samples_ns), key,
                       Median(result.samples_ns)),
           now_ns);
  }
}

void Farm::Strike(const std::string& key, const Hash128& candidate, const std::string& why,
                  int64_t now_ns) {
  const auto found = workers_.find(key);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  worker.strikes.insert(candidate);
  LogWarning("device '{}' is at fault: {}", key, why);
  if (static_cast<int>(worker.strikes.size()) < policy_.max_strikes ||
      !Next(worker.device, DeviceEvent::kQuarantine)) {
    return;
  }
  Move(worker.device, DeviceEvent::kQuarantine);
  worker.reason = fmt::format("{} candidates that are good elsewhere failed, last: {}",
                              worker.strikes.size(), why);
  const db::FarmDevice row{worker.name, worker.hello.device.name, worker.device, worker.reason};
  known_devices_[key] = row;
  step_.changes.push_back(db::PutFarmDevice{row});
  AddAudit("quarantine", key, worker.reason);
  CompareProbes(worker.hello.device.device_class);
  ++counters_.quarantined;
  // What it holds goes elsewhere; what it has answered counts.
  const std::set<Hash128> leases = worker.leases;
  for (const Hash128& token : leases) {
    if (leases_.at(token).state == LeaseState::kAnswered) continue;
    Revoke(token, "the device is quarantined", now_ns);
  }
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
  // Of two the faster one is the class: what disturbs a machine makes it slower.
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
