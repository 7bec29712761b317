#include "server/web/page_json.h"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "server/transitions.h"

namespace hone::server::web {
namespace {

using nlohmann::ordered_json;

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }
double Ms(double ns) { return ns * 1e-6; }

/// null where a number is not known (negative, or zero for a latency).
ordered_json Known(double value) { return value >= 0 ? ordered_json(value) : ordered_json(); }
ordered_json Latency(double value) { return value > 0 ? ordered_json(value) : ordered_json(); }

ordered_json ProbesJson(const std::optional<proto::Probes>& probes) {
  if (!probes) return {};
  return {{"flop_per_second", probes->flop_per_second},
          {"memory_bytes_per_second", probes->memory_bytes_per_second},
          {"noise", probes->noise}};
}

ordered_json DeviceJson(const DeviceView& d) {
  return {{"worker", d.info.worker},
          {"device", d.info.device.name},
          {"device_class", d.info.device.device_class},
          {"target", d.info.device.target},
          {"cores", d.info.device.cores},
          {"memory_bytes", d.info.device.memory_bytes},
          {"driver", d.info.device.driver},
          {"program_version", d.info.program_version},
          {"probes", ProbesJson(d.info.probes)},
          {"state", std::string(NameOf(d.info.state))},
          {"reason", d.info.reason},
          {"connected", d.info.connected},
          {"role", std::string(proto::NameOf(d.info.role))},
          {"sandboxed", d.info.sandboxed},
          {"leases", d.info.leases},
          {"started", d.started},
          {"busy", Known(d.busy_share)},
          {"noise", Known(d.noise)},
          {"results", d.info.results},
          {"noisy_results", d.noisy_results},
          {"quiet_s", Seconds(d.quiet_ns)}};
}

ordered_json OutcomesJson(const std::array<int64_t, measure::kNumOutcomes>& outcomes) {
  ordered_json object = ordered_json::object();
  for (int i = 0; i < measure::kNumOutcomes; ++i) {
    object[std::string(measure::ToString(static_cast<measure::Outcome>(i)))] =
        outcomes[static_cast<size_t>(i)];
  }
  return object;
}

ordered_json CountersJson(const FarmCounters& c) {
  return {{"leases",
           {{"granted", c.granted},
            {"done", c.acknowledged},
            {"expired", c.expired},
            {"returned", c.returned},
            {"revoked", c.revoked},
            {"lost", c.lost}}},
          {"results",
           {{"received", c.results},
            {"duplicate", c.duplicates},
            {"conflict", c.conflicts},
            {"stale", c.stale},
            {"invalid", c.invalid}}},
          {"condemned", c.condemned},
          {"infrastructure_faults", c.infrastructure_faults},
          {"held_back", c.held_back},
          {"quarantined", c.quarantined},
          {"workers_refused", c.refused_workers},
          {"streams_replaced", c.replaced_streams},
          {"outcomes", OutcomesJson(c.outcomes)}};
}

ordered_json CurveJson(const std::vector<SessionStory::Point>& curve, size_t points) {
  ordered_json list = ordered_json::array();
  const size_t n = curve.size();
  const size_t step = n <= points ? 1 : (n + points - 1) / points;
  for (size_t i = 0; i < n; ++i) {
    if (i % step != 0 && i + 1 != n) continue;
    list.push_back({curve[i].seconds, Ms(curve[i].ns)});
  }
  return list;
}

std::string TaskName(const SessionStory& story, const Hash128& workload) {
  for (const SessionStory::Task& task : story.tasks()) {
    if (task.workload == workload) return task.name;
  }
  return "";
}

struct Times {
  double elapsed_s = 0;
  std::optional<double> left_s;
};

Times TimesOf(const SessionRow& row, const SessionStory& story, const OpenSessionView* open,
              int64_t unix_ms) {
  Times times{.elapsed_s = story.elapsed_seconds()};
  if (row.row.state >= SessionState::kFinished) return times;
  times.left_s = story.SecondsLeft(row.spec, unix_ms);
  if (open == nullptr || open->left_ns < 0) return times;
  // Its story stands still while nothing is answered, its deadline comes nearer.
  const double left_s = Seconds(open->left_ns);
  times.left_s = std::min(times.left_s.value_or(left_s), left_s);
  if (row.spec.seconds > 0 && row.spec.until_unix_ms == 0) {
    times.elapsed_s = std::max(times.elapsed_s, row.spec.seconds - left_s);
  }
  return times;
}

ordered_json AttemptHead(const db::Attempt& attempt, const SessionStory& story) {
  return {{"id", attempt.id.ToHex()},
          {"outcome", std::string(measure::ToString(attempt.outcome))},
          {"message", attempt.message},
          {"task", TaskName(story, attempt.key.workload)},
          {"workload", attempt.key.workload.ToHex()},
          {"proposer", attempt.proposer},
          {"created_ms", attempt.created_ms}};
}

}  // namespace

ordered_json FarmJson(const ProcessFacts& facts, const FarmView& view, const std::string& trouble,
                      int64_t unix_ms) {
  ordered_json devices = ordered_json::array();
  for (const DeviceView& device : view.devices) devices.push_back(DeviceJson(device));
  ordered_json projects = ordered_json::array();
  for (const ProjectView& p : view.projects) {
    projects.push_back({{"name", p.name},
                        {"share", p.share},
                        {"charged_s", Seconds(p.charged_ns)},
                        {"leased", p.leased}});
  }
  return {{"version", kPageJsonVersion},
          {"honed", facts.version},
          {"builder", facts.builder},
          {"unix_ms", unix_ms},
          {"uptime_s", Seconds(facts.now_ns - facts.started_ns)},
          {"view_age_s", view.taken_ns == 0 ? ordered_json()
                                            : ordered_json(Seconds(facts.now_ns - view.taken_ns))},
          {"trouble", trouble},
          {"sessions_running", view.sessions.size()},
          {"queue", {{"waiting", view.waiting}, {"oldest_s", Seconds(view.oldest_waiting_ns)}}},
          {"leases_open", view.open_leases},
          {"leases_started", view.started_leases},
          {"worker_streams", facts.streams},
          {"callers_refused",
           std::accumulate(facts.refusals.begin(), facts.refusals.end(), int64_t{0})},
          {"commits",
           {{"count", facts.commits.commits},
            {"p50_ms", Ms(static_cast<double>(facts.commits.QuantileNs(0.5)))},
            {"p99_ms", Ms(static_cast<double>(facts.commits.QuantileNs(0.99)))},
            {"worst_ms", Ms(static_cast<double>(facts.commits.worst_ns))}}},
          {"log", {{"bytes", facts.log_bytes}, {"wal_bytes", facts.wal_bytes}}},
          {"counters", CountersJson(view.counters)},
          {"projects", std::move(projects)},
          {"devices", std::move(devices)}};
}

ordered_json VerdictJson(const std::optional<db::ModelVerdict>& v) {
  if (!v) return nullptr;
  return {{"keeps_defaults", v->keeps_defaults},
          {"default_ms", Ms(v->default_ns)},
          {"tuned_ms", Ms(v->tuned_ns)},
          {"ratio", v->ratio},
          {"ratio_low", v->ratio_low},
          {"ratio_high", v->ratio_high},
          {"rounds", v->rounds}};
}

ordered_json SessionJson(const SessionRow& row, const SessionStory& story, bool complete,
                         const OpenSessionView* open, int64_t unix_ms, size_t points) {
  const Times times = TimesOf(row, story, open, unix_ms);
  return {{"version", kPageJsonVersion},
          {"id", row.row.id.ToHex()},
          {"model", row.spec.model},
          {"owner", row.row.owner},
          {"project", row.row.project},
          {"state", std::string(NameOf(row.row.state))},
          {"reason", row.row.reason},
          {"target", row.spec.target},
          {"device_class", row.row.device_class},
          {"priority", row.spec.priority},
          {"created_ms", row.row.created_ms},
          {"tasks", story.tasks().size()},
          {"measured_tasks", story.measured_tasks()},
          {"attempts", story.answered()},
          {"failed", story.failed()},
          {"default_ms", Latency(Ms(story.TotalNs(false)))},
          {"best_ms", Latency(Ms(story.TotalNs(true)))},
          {"searched_default_ms", Latency(Ms(story.SearchedDefaultNs()))},
          {"waits", open == nullptr ? "" : open->waits},
          {"elapsed_s", times.elapsed_s},
          {"left_s", times.left_s ? ordered_json(*times.left_s) : ordered_json()},
          {"budget",
           {{"seconds", row.spec.seconds},
            {"trials", row.spec.trials},
            {"until_ms", row.spec.until_unix_ms}}},
          {"verdict", VerdictJson(story.verdict())},
          {"complete", complete},
          {"curve", CurveJson(story.curve(), points)}};
}

ordered_json TasksJson(const SessionStory& story, const std::vector<double>& bounds_ns) {
  const double total = story.TotalNs(true);
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < story.tasks().size(); ++i) {
    const SessionStory::Task& task = story.tasks()[i];
    const bool bounded = i < bounds_ns.size() && bounds_ns[i] > 0 && task.best_ns > 0;
    list.push_back({{"name", task.name},
                    {"workload", task.workload.ToHex()},
                    {"count", task.count},
                    {"trials", task.trials},
                    {"failed", task.failed},
                    {"default_us", Latency(task.default_ns * 1e-3)},
                    {"best_us", Latency(task.best_ns * 1e-3)},
                    {"share", total > 0 ? task.count * task.best_ns / total : 0},
                    {"roofline", Known(bounded ? bounds_ns[i] / task.best_ns : -1)},
                    {"verdict", !task.compared  ? "open"
                                : task.replaced ? "replaced"
                                                : "kept"}});
  }
  return list;
}

ordered_json TrialsJson(const SessionStory& story) {
  ordered_json list = ordered_json::array();
  for (const SessionStory::Trial& trial : story.Trials()) {
    const SessionStory::Task& task = story.tasks()[static_cast<size_t>(trial.task)];
    list.push_back({{"attempt", trial.attempt},
                    {"task", task.name},
                    {"workload", task.workload.ToHex()},
                    {"proposer", trial.proposer},
                    {"outcome", std::string(measure::ToString(trial.outcome))},
                    {"seconds", trial.seconds},
                    {"us", Latency(trial.ns * 1e-3)}});
  }
  return list;
}

ordered_json FailuresJson(const std::vector<FailureCause>& failures, const SessionStory& story) {
  ordered_json list = ordered_json::array();
  for (const FailureCause& failure : failures) {
    ordered_json examples = ordered_json::array();
    for (const db::Attempt& example : failure.examples) {
      examples.push_back(AttemptHead(example, story));
    }
    list.push_back({{"outcome", std::string(measure::ToString(failure.outcome))},
                    {"cause", failure.cause},
                    {"count", failure.count},
                    {"examples", std::move(examples)}});
  }
  return list;
}

ordered_json AttemptJson(const db::Attempt& attempt, const SessionStory& story) {
  ordered_json object = AttemptHead(attempt, story);
  object["version"] = kPageJsonVersion;
  object["target"] = attempt.key.target;
  object["cost_s"] = Seconds(attempt.cost_ns);
  object["trace"] = attempt.trace;
  return object;
}

ordered_json BestJson(const db::RankedRecord& best, const SessionStory& story) {
  const db::TuningRecord& r = best.record;
  return {{"version", kPageJsonVersion},
          {"id", r.id.ToHex()},
          {"task", TaskName(story, r.key.workload)},
          {"workload", r.key.workload.ToHex()},
          {"target", r.key.target},
          {"rigor", std::string(db::RigorName(best.rigor))},
          {"median_us", r.median_ns * 1e-3},
          {"low_us", r.low_ns * 1e-3},
          {"high_us", r.high_ns * 1e-3},
          {"noisy", r.noisy},
          {"builder", r.builder_version},
          {"created_ms", r.created_ms},
          {"trace", r.trace}};
}

std::string JsonText(const ordered_json& object) {
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace hone::server::web
