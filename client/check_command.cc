#include <algorithm>
#include <cmath>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/status.h"
#include "client/command.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/kernel_check.h"
#include "client/model_inputs.h"
#include "client/model_loader.h"
#include "client/model_options.h"
#include "client/user_cache.h"

namespace hone::client {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json ReportJson(const KernelCheckReport& report, const std::string& model) {
  auto steps = Json::array();
  for (const CheckedStep& step : report.steps) {
    steps.push_back({{"step", step.step},
                     {"name", step.name},
                     {"workload", step.workload_hash},
                     {"rung", step.rung},
                     {"points", step.points},
                     {"share_of_bound", Number(step.worst_share)}});
  }
  Json object = {{"model", model},
                 {"ok", !report.wrong.has_value()},
                 {"unchecked_routines", report.unchecked_routines},
                 {"steps", std::move(steps)}};
  if (report.wrong) {
    const WrongElement& wrong = *report.wrong;
    object["wrong"] = {{"step", wrong.step.step},
                       {"name", wrong.step.name},
                       {"workload_hash", wrong.step.workload_hash},
                       {"value", wrong.value},
                       {"index", wrong.index},
                       {"code", Number(wrong.code)},
                       {"oracle", Number(wrong.oracle)},
                       {"bound", Number(wrong.bound)},
                       {"workload", wrong.workload},
                       {"trace", wrong.trace}};
  }
  return object;
}

std::string ReportText(const KernelCheckReport& report) {
  std::string text;
  for (const CheckedStep& step : report.steps) {
    text += fmt::format("  step {:>3}  {} {:<8} {:>4} points, {:>5.1f} % of what is allowed  {}\n",
                        step.step, step.workload_hash, step.rung, step.points,
                        100 * step.worst_share, step.name);
  }
  if (report.unchecked_routines > 0) {
    text += fmt::format("  {} routines of the runtime were run but have no oracle here\n",
                        report.unchecked_routines);
  }
  return text;
}

/// The model by default and, where other schedules were named, by those: each step's default first,
/// then what answered instead. Ends at the first wrong element.
absl::StatusOr<KernelCheckReport> CheckBoth(const graph::Graph& graph, const NamedTensors& inputs,
                                            const KernelCheckOptions& options,
                                            measure::BuilderClient& builder,
                                            compiler::TraceSource& traces, bool tuned,
                                            const MonotonicClock& clock) {
  compiler::DefaultTraceSource defaults;
  auto report = CheckKernels(graph, inputs, options, builder, tuned ? defaults : traces, clock);
  if (!report.ok() || report->wrong || !tuned) return report;
  HONE_ASSIGN_OR_RETURN(KernelCheckReport other,
                        CheckKernels(graph, inputs, options, builder, traces, clock));
  for (CheckedStep& step : other.steps) {
    if (step.rung != "default") report->steps.push_back(std::move(step));
  }
  std::stable_sort(report->steps.begin(), report->steps.end(),
                   [](const CheckedStep& a, const CheckedStep& b) { return a.step < b.step; });
  report->wrong = std::move(other.wrong);
  return report;
}

/// Others may be the default ones again.
std::string RightText(const KernelCheckReport& report, const TraceChoice& traces) {
  const auto others = std::count_if(report.steps.begin(), report.steps.end(),
                                    [](const CheckedStep& s) { return s.rung != "default"; });
  const auto defaults = static_cast<std::ptrdiff_t>(report.steps.size()) - others;
  if (others == 0) return fmt::format("{} steps are right\n", defaults);
  return fmt::format("{} steps are right by default, {} also by the schedule of '{}'{}\n", defaults,
                     others, traces.path,
                     traces.unasked ? "; --no-log checks the defaults alone" : "");
}

std::string WrongText(const WrongElement& wrong) {
  return fmt::format("workload {}\n{}\ntrace ({})\n{}\n", wrong.step.workload_hash, wrong.workload,
                     wrong.step.rung, wrong.trace);
}

}  // namespace

absl::Status RunCheck(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  const MonotonicClock& clock = *context.environment.clock;
  const std::string path = arguments.Text("MODEL");
  KernelCheckOptions options;
  HONE_ASSIGN_OR_RETURN(options.target, ReadTarget(arguments));
  HONE_ASSIGN_OR_RETURN(options.accuracy, ReadAccuracy(arguments));
  options.points = static_cast<int>(arguments.Integer("points"));
  options.every_step = arguments.Flag("every-step");
  options.seed = static_cast<uint64_t>(arguments.Integer("seed"));
  options.cascades = ReadCascades(arguments);
  HONE_ASSIGN_OR_RETURN(const bool package, IsPackage(path));
  if (package) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is a package: it holds no workloads to check against; give the model", path));
  }
  HONE_ASSIGN_OR_RETURN(const TraceChoice choice, ChooseTraces(arguments, context.environment));
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, path));
  HONE_ASSIGN_OR_RETURN(const NamedTensors inputs,
                        ReadOrDrawInputs(arguments, path, InputsOf(graph), context.err));
  measure::BuilderClient builder(LocalBuilder(arguments, context.environment), clock);
  options.cache = OpenUserCache(arguments, context.environment);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<compiler::TraceSource> traces,
                        OpenTraces(arguments, choice));
  const bool tuned = choice.kind != TraceChoice::Kind::kDefaults;
  const auto report = CheckBoth(graph, inputs, options, builder, *traces, tuned, clock);
  if (!report.ok()) return CompileError(report.status(), choice);
  context.json_result = JsonText(ReportJson(*report, ModelName(path)));
  if (!context.json()) context.out << ReportText(*report);
  if (!report->wrong) {
    if (!context.json()) context.out << RightText(*report, choice);
    return absl::OkStatus();
  }
  const WrongElement& wrong = *report->wrong;
  if (!context.json()) context.out << WrongText(wrong);
  return WithExitCode(absl::InternalError(fmt::format(
                          "step {} ({}, workload {}) computes {} wrongly: element {} is {:.9g}, "
                          "the oracle says {:.9g} "
                          "within {:.3g}; please report it with workload, trace and target",
                          wrong.step.step, wrong.step.name, wrong.step.workload_hash, wrong.value,
                          wrong.index, wrong.code, wrong.oracle, wrong.bound)),
                      ExitCode::kOutputsDiffer);
}

}  // namespace hone::client
