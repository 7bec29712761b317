#include "client/session_report.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "ir/text.h"
#include "ir/workload_cost.h"
#include "measure/device_probe.h"
#include "search/search_event.h"

namespace hone::client {
namespace {

using nlohmann::json;

/// A longer pause between two results means that the session was interrupted and went on later.
constexpr double kPauseSeconds = 60;

struct Facts {
  std::vector<db::Attempt> attempts;
  std::unordered_map<Hash128, db::TuningRecord> records;
};

absl::StatusOr<Facts> ReadFacts(db::Database& log, const Hash128& session) {
  Facts facts;
  HONE_RETURN_IF_ERROR(log.ScanAttempts({.session = session}, [&](const db::Attempt& attempt) {
    facts.attempts.push_back(attempt);
    return absl::OkStatus();
  }));
  HONE_RETURN_IF_ERROR(log.ScanRecords({.session = session}, [&](const db::RankedRecord& r) {
    facts.records.emplace(r.record.id, r.record);
    return absl::OkStatus();
  }));
  return facts;
}

absl::StatusOr<db::Session> FindSession(db::Database& log, const std::string& prefix) {
  HONE_ASSIGN_OR_RETURN(const std::vector<db::StoredSession> sessions, log.Sessions());
  std::vector<const db::Session*> found;
  for (const db::StoredSession& stored : sessions) {
    if (stored.session.id.ToHex().starts_with(prefix)) found.push_back(&stored.session);
  }
  if (!prefix.empty() && found.size() == 1) return *found[0];
  if (!prefix.empty() || found.empty()) {
    std::string known;
    for (const db::StoredSession& stored : sessions) {
      known += "\n  " + stored.session.id.ToHex();
    }
    return absl::NotFoundError(
        sessions.empty() ? "the log holds no session; `hone tune MODEL --db LOG` makes one"
                         : fmt::format("{} session of the log begins with '{}'; it holds{}",
                                       found.empty() ? "no" : "more than one", prefix, known));
  }
  for (auto it = found.rbegin(); it != found.rend(); ++it) {
    bool measured = false;
    HONE_RETURN_IF_ERROR(log.ScanAttempts({.session = (*it)->id}, [&](const db::Attempt&) {
      measured = true;
      return absl::OkStatus();
    }));
    if (measured) return **it;
  }
  return *found.back();
}

Interval IntervalOf(const db::TuningRecord& record) {
  return {record.median_ns * 1e-3, record.low_ns * 1e-3, record.high_ns * 1e-3};
}

/// Seconds of tuning at each attempt's end, pauses left out.
std::vector<double> Times(const std::vector<db::Attempt>& attempts, int64_t start_ms) {
  std::vector<double> times;
  double seconds = 0;
  int64_t last_ms = start_ms;
  for (const db::Attempt& attempt : attempts) {
    const double step = static_cast<double>(attempt.created_ms - last_ms) * 1e-3;
    if (step > 0 && step < kPauseSeconds) seconds += step;
    last_ms = std::max(last_ms, attempt.created_ms);
    times.push_back(seconds);
  }
  return times;
}

/// The request's model, target, command; its tasks in `report.tasks`, with names and counts.
void ReadRequest(SessionReport& report) {
  const json request = json::parse(report.session.request, nullptr, false);
  if (!request.is_object()) return;
  const auto text = [&](const char* key) {
    return request.contains(key) && request[key].is_string() ? request[key].get<std::string>()
                                                             : std::string();
  };
  report.model = text("model");
  report.target = text("target");
  report.command = text("command");
  if (!request.contains("tasks") || !request["tasks"].is_array()) return;
  for (const json& each : request["tasks"]) {
    if (!each.is_object()) continue;
    const auto hash = Hash128::FromHex(each.value("workload", ""));
    if (!hash) continue;
    ReportTask& task = report.tasks.emplace_back();
    task.workload = *hash;
    task.name = each.value("name", "");
    task.count = each.value("count", 1);
  }
}

ReportTask& TaskOf(SessionReport& report, std::unordered_map<Hash128, size_t>& place,
                   const Hash128& workload) {
  const auto [it, fresh] = place.emplace(workload, report.tasks.size());
  if (fresh) {
    ReportTask& task = report.tasks.emplace_back();
    task.workload = workload;
    task.name = workload.ToHex().substr(0, 12);
  }
  return report.tasks[it->second];
}

/// Attempts and records into tasks and totals.
void AddFacts(const Facts& facts, SessionReport& report) {
  std::unordered_map<Hash128, size_t> place;
  for (size_t i = 0; i < report.tasks.size(); ++i) place.emplace(report.tasks[i].workload, i);
  for (const db::Attempt& a : facts.attempts) TaskOf(report, place, a.key.workload);
  const std::vector<double> times = Times(facts.attempts, report.session.created_ms);
  size_t timed = 0;
  for (size_t i = 0; i < facts.attempts.size(); ++i) {
    const db::Attempt& attempt = facts.attempts[i];
    ReportTask& task = TaskOf(report, place, attempt.key.workload);
    report.target = attempt.key.target;
    report.device_class = attempt.key.device_class;
    ++task.tried;
    ++report.outcomes[std::string(measure::ToString(attempt.outcome))];
    auto& [candidates, wins] = report.proposers[attempt.proposer];
    ++candidates;
    const auto record = facts.records.find(attempt.record);
    if (attempt.outcome != measure::Outcome::kOk) {
      ++task.failed;
      continue;
    }
    if (record == facts.records.end()) continue;  // it lost on a part of the work
    const Interval latency = IntervalOf(record->second);
    if (attempt.proposer == "default") task.by_default = latency;
    if (!task.curve.empty() && latency.median_us >= task.best.median_us) continue;
    if (!task.curve.empty()) ++wins;
    if (task.curve.empty()) ++timed;
    task.best = latency;
    task.rigor = std::string(db::RigorName(record->second.rigor));
    task.proposer = attempt.proposer;
    task.curve.push_back({times[i], latency.median_us});
    if (timed < report.tasks.size()) continue;
    double total = 0;
    for (const ReportTask& each : report.tasks) total += each.count * each.best.median_us;
    report.model_curve.push_back({times[i], total});
  }
  if (!times.empty()) report.used_seconds = times.back();
}

/// The candidates that the page lists. Tasks have their places by now.
void AddTrials(const Facts& facts, SessionReport& report) {
  std::unordered_map<Hash128, size_t> place;
  for (size_t i = 0; i < report.tasks.size(); ++i) place.emplace(report.tasks[i].workload, i);
  const std::vector<double> times = Times(facts.attempts, report.session.created_ms);
  std::vector<ReportTrial> all;
  std::vector<std::vector<size_t>> timed(report.tasks.size());
  for (size_t i = 0; i < facts.attempts.size(); ++i) {
    const db::Attempt& attempt = facts.attempts[i];
    const auto record = facts.records.find(attempt.record);
    all.push_back({.number = static_cast<int64_t>(i + 1),
                   .task = place.at(attempt.key.workload),
                   .seconds = times[i],
                   .us = record == facts.records.end() ? 0 : record->second.median_ns * 1e-3,
                   .proposer = attempt.proposer,
                   .outcome = std::string(measure::ToString(attempt.outcome))});
    if (all[i].us > 0) timed[all[i].task].push_back(i);
  }
  std::set<size_t, std::greater<>> listed;
  for (size_t i = all.size(); i > 0 && all.size() - i < SessionReport::kNewest; --i) {
    listed.insert(i - 1);
  }
  for (std::vector<size_t>& of_task : timed) {
    const size_t most = std::min(of_task.size(), SessionReport::kFastest);
    std::ranges::partial_sort(of_task, of_task.begin() + static_cast<std::ptrdiff_t>(most), {},
                              [&](size_t i) { return std::pair(all[i].us, i); });
    listed.insert(of_task.begin(), of_task.begin() + static_cast<std::ptrdiff_t>(most));
  }
  for (const size_t i : listed) report.trials.push_back(std::move(all[i]));
}

/// The winners of final comparisons: better known than what the race said.
void AddVerdicts(const Facts& facts, SessionReport& report) {
  std::unordered_map<Hash128, const db::TuningRecord*> verified;
  for (const auto& [id, record] : facts.records) {
    if (!db::WonComparison(record.rigor)) continue;
    const db::TuningRecord*& kept = verified[record.key.workload];
    const auto order = [](const db::TuningRecord& r) {
      return std::pair(r.created_ms, r.id.ToHex());
    };
    if (kept == nullptr || order(*kept) < order(record)) kept = &record;
  }
  for (ReportTask& task : report.tasks) {
    const auto it = verified.find(task.workload);
    if (it == verified.end()) continue;
    task.best = IntervalOf(*it->second);
    task.rigor = std::string(db::RigorName(it->second->rigor));
    for (const db::Attempt& attempt : facts.attempts) {
      if (attempt.key.workload == task.workload && attempt.trace == it->second->trace) {
        task.proposer = attempt.proposer;
        break;
      }
    }
  }
}

/// What the comparison in turns at the end says.
void AddVerdict(const search::VerdictEvent& verdict, size_t named_tasks, SessionReport& report) {
  if (static_cast<size_t>(verdict.task) >= named_tasks || verdict.default_ns <= 0) return;
  ReportTask& compared = report.tasks[static_cast<size_t>(verdict.task)];
  const double default_us = verdict.default_ns * 1e-3;
  compared.by_default = {default_us, default_us, default_us};
  compared.compared = true;
}

std::optional<db::ModelVerdict>& Place(const db::ModelVerdict& verdict, SessionReport& report) {
  switch (verdict.subject) {
    case db::ModelVerdict::Subject::kBatch: return report.batch;
    case db::ModelVerdict::Subject::kBranches: return report.branches;
    case db::ModelVerdict::Subject::kCascades: return report.cascades;
    default: return report.verdict;
  }
}

/// Adds what only the events tell. The first `named_tasks` stand in the session's order.
absl::Status AddEnd(db::Database& log, size_t named_tasks, SessionReport& report) {
  return log.ScanEvents({.session = report.session.id}, [&](const db::Event& event) {
    if (auto verdict = db::VerdictOf(event, false)) Place(*verdict, report) = verdict;
    if (const auto v = search::EventAs<search::VerdictEvent>(event))
      AddVerdict(*v, named_tasks, report);
    if (const auto e = search::EventAs<search::ElapsedEvent>(event))
      report.used_seconds = e->seconds;
    if (auto end = search::EventAs<search::FinishedEvent>(event)) report.reason = end->why;
    if (auto end = search::EventAs<search::InterruptedEvent>(event)) report.reason = end->why;
    if (event.type == search::ProposedEvent::kType) report.reason.clear();  // it went on
    return absl::OkStatus();
  });
}

absl::Status AddCosts(db::Database& log, const ClassOfHost& class_of, const MonotonicClock& clock,
                      SessionReport& report) {
  ir::Target target;
  std::string why;
  measure::DeviceRates rates;
  if (ir::ParseTarget(report.target, &target, &why) && class_of(target) == report.device_class &&
      ir::HostCanRun(target, &why)) {
    HONE_ASSIGN_OR_RETURN(rates, measure::MeasureRates(target, clock));
    report.has_roofline = true;
  }
  for (ReportTask& task : report.tasks) {
    HONE_ASSIGN_OR_RETURN(const auto row, log.FindWorkload(task.workload));
    if (!row) continue;
    const auto workload = ir::ParseWorkload(row->text);
    if (!workload.ok()) continue;  // of a newer Hone
    const ir::WorkloadCost cost = ir::CostOf(*workload);
    task.flop = cost.flop();
    task.bytes = cost.bytes;
    if (report.has_roofline) task.bound_us = rates.BoundNs(cost) * 1e-3;
  }
  return absl::OkStatus();
}

}  // namespace

double ReportTask::Gain() const {
  return by_default.median_us > 0 && best.median_us > 0 ? by_default.median_us / best.median_us : 1;
}

double ReportTask::GainLow() const {
  return by_default.low_us > 0 && best.high_us > 0 ? by_default.low_us / best.high_us : 1;
}

double ReportTask::GainHigh() const {
  return by_default.high_us > 0 && best.low_us > 0 ? by_default.high_us / best.low_us : 1;
}

std::string SessionReport::SumOf() const {
  const auto timed = std::ranges::count_if(tasks, [](const ReportTask& task) {
    return task.best.median_us > 0 && task.by_default.median_us > 0;
  });
  const auto all = static_cast<std::ptrdiff_t>(tasks.size());
  return timed == all ? "" : fmt::format("{} of {} kernels", timed, all);
}

bool SessionReport::Predicted() const {
  return std::ranges::any_of(
      tasks, [](const ReportTask& task) { return task.rigor == RigorName(db::Rigor::kPredicted); });
}

bool SessionReport::Compared() const {
  return std::ranges::all_of(tasks, [](const ReportTask& task) {
    return task.compared || task.best.median_us <= 0 || task.by_default.median_us <= 0;
  });
}

Interval SessionReport::ByDefault() const {
  Interval sum;
  for (const ReportTask& task : tasks) {
    if (task.best.median_us <= 0 || task.by_default.median_us <= 0) continue;
    sum.median_us += task.count * task.by_default.median_us;
    sum.low_us += task.count * task.by_default.low_us;
    sum.high_us += task.count * task.by_default.high_us;
  }
  return sum;
}

Interval SessionReport::Best() const {
  Interval sum;
  for (const ReportTask& task : tasks) {
    if (task.best.median_us <= 0 || task.by_default.median_us <= 0) continue;
    sum.median_us += task.count * task.best.median_us;
    sum.low_us += task.count * task.best.low_us;
    sum.high_us += task.count * task.best.high_us;
  }
  return sum;
}

absl::StatusOr<SessionReport> ReadSessionReport(db::Database& log, const std::string& prefix,
                                                const ClassOfHost& class_of,
                                                const MonotonicClock& clock) {
  SessionReport report;
  HONE_ASSIGN_OR_RETURN(report.session, FindSession(log, prefix));
  HONE_ASSIGN_OR_RETURN(const Facts facts, ReadFacts(log, report.session.id));
  ReadRequest(report);
  const size_t named_tasks = report.tasks.size();
  AddFacts(facts, report);
  AddVerdicts(facts, report);
  HONE_RETURN_IF_ERROR(AddEnd(log, named_tasks, report));
  HONE_RETURN_IF_ERROR(log.ScanDevices([&](const db::Device& device) {
    if (device.device_class == report.device_class) report.fingerprint = device.fingerprint;
    return absl::OkStatus();
  }));
  HONE_RETURN_IF_ERROR(AddCosts(log, class_of, clock, report));
  const auto share = [](const ReportTask& task) {
    return task.count * std::max(task.by_default.median_us, task.best.median_us);
  };
  std::stable_sort(report.tasks.begin(), report.tasks.end(),
                   [&](const ReportTask& a, const ReportTask& b) { return share(a) > share(b); });
  AddTrials(facts, report);
  return report;
}

}  // namespace hone::client
