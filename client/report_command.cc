#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "base/status.h"
#include "client/command.h"
#include "client/json_text.h"
#include "client/open_log.h"
#include "client/output_path.h"
#include "client/report_page.h"
#include "client/session_report.h"
#include "client/verdict_text.h"
#include "measure/device.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

ordered_json IntervalJson(const Interval& latency) {
  if (latency.median_us <= 0) return nullptr;
  return {
      {"median_us", latency.median_us}, {"low_us", latency.low_us}, {"high_us", latency.high_us}};
}

ordered_json ReportJson(const SessionReport& report, const std::string& log,
                        const std::string& page) {
  auto tasks = ordered_json::array();
  for (const ReportTask& task : report.tasks) {
    ordered_json object = {
        {"workload", task.workload.ToHex()},
        {"name", task.name},
        {"count", task.count},
        {"default", IntervalJson(task.by_default)},
        {"best", IntervalJson(task.best)},
        {"rigor", task.rigor.empty() ? ordered_json() : ordered_json(task.rigor)},
        {"compared", task.compared},
        {"gain", nullptr},
        {"gain_low", nullptr},
        {"gain_high", nullptr},
        {"tried", task.tried},
        {"failed", task.failed}};
    if (task.compared) {
      object["gain"] = task.Gain();
      object["gain_low"] = task.GainLow();
      object["gain_high"] = task.GainHigh();
    }
    if (task.bound_us > 0 && task.best.median_us > 0) {
      object["roofline_share"] = task.bound_us / task.best.median_us;
    }
    tasks.push_back(std::move(object));
  }
  auto proposers = ordered_json::object();
  for (const auto& [name, counts] : report.proposers) {
    proposers[name] = {{"candidates", counts.first}, {"wins", counts.second}};
  }
  return {{"verdict", report.verdict ? VerdictJson(*report.verdict) : ordered_json()},
          {"batch", report.batch ? WayJson(*report.batch) : ordered_json()},
          {"branches", report.branches ? WayJson(*report.branches) : ordered_json()},
          {"cascades", report.cascades ? WayJson(*report.cascades) : ordered_json()},
          {"log", log},
          {"session", report.session.id.ToHex()},
          {"model", report.model},
          {"target", report.target},
          {"device_class", report.device_class},
          {"seed", report.session.seed},
          {"command", report.command},
          {"reason", report.reason},
          {"seconds", report.used_seconds},
          {"default", IntervalJson(report.ByDefault())},
          {"best", IntervalJson(report.Best())},
          {"outcomes", report.outcomes},
          {"proposers", std::move(proposers)},
          {"tasks", std::move(tasks)},
          {"page", page}};
}

}  // namespace

absl::Status RunReport(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  HONE_ASSIGN_OR_RETURN(const std::string path, UserLogPath(arguments, context.environment));
  const std::string page = arguments.TextOr("output", "report.html");
  HONE_RETURN_IF_ERROR(CheckOutput(page, {path}));
  HONE_ASSIGN_OR_RETURN(const auto log, OpenUserLog(path, {}, LogNameOf(arguments)));
  SessionReport report;
  {
    const auto read = log->BeginRead();
    if (!read.ok()) return LogError(read.status());
    auto session = ReadSessionReport(
        *log, arguments.TextOr("session", ""),
        [](const ir::Target& target) { return measure::DeviceClassFor(target); },
        *context.environment.clock);
    if (!session.ok()) return LogError(Annotate(session.status(), fmt::format("'{}'", path)));
    report = *std::move(session);
  }
  HONE_RETURN_IF_ERROR(WriteFileAtomically(page, ReportPage(report)));
  if (context.json()) {
    context.json_result = JsonText(ReportJson(report, path, page));
    return absl::OkStatus();
  }
  const Interval by_default = report.ByDefault(), best = report.Best();
  if (report.verdict) context.out << VerdictLine(*report.verdict) << '\n';
  for (const auto& way : {report.batch, report.branches, report.cascades})
    if (way) context.out << WayLine(*way) << '\n';
  context.out << fmt::format("wrote {}: session {} of {}, {} groups", page,
                             report.session.id.ToHex().substr(0, 12),
                             report.model.empty() ? "a model" : report.model, report.tasks.size());
  if (best.median_us > 0) {
    context.out << fmt::format(", kernels {:.3f} ms by default, {:.3f} ms tuned",
                               by_default.median_us * 1e-3, best.median_us * 1e-3);
    if (report.Compared()) {
      context.out << fmt::format(" ({:.2f} x)", by_default.median_us / best.median_us);
    }
    if (report.Predicted()) context.out << ", both predicted by the analytic model";
    if (!report.SumOf().empty()) context.out << fmt::format(", sum of {}", report.SumOf());
  }
  context.out << '\n';
  return absl::OkStatus();
}

}  // namespace hone::client
