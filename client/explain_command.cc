#include <filesystem>
#include <map>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/shell_word.h"
#include "base/status.h"
#include "base/versions.h"
#include "client/command.h"
#include "client/emitted_code.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/log_trace_source.h"
#include "client/model_loader.h"
#include "client/model_options.h"
#include "client/open_log.h"
#include "client/task_explanation.h"
#include "client/trace_choice.h"
#include "client/verdict_text.h"
#include "compiler/extract_kernels.h"
#include "db/memory_database.h"
#include "db/model_verdict.h"
#include "db/prediction.h"
#include "ir/kind_facts.h"
#include "ir/narrow_target.h"
#include "ir/target.h"
#include "ir/text.h"
#include "measure/device.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

/// One task to explain, with what people call it.
struct Task {
  db::RecordKey key;
  ir::Workload workload;
  std::string name;  ///< operators; empty when only the hash was given
  int count = 0;     ///< 0: unknown
};

std::string DeviceClassOf(const Arguments& arguments, const ir::Target& target) {
  return arguments.Given("device-class") ? arguments.Text("device-class")
                                         : measure::DeviceClassFor(target);
}

absl::StatusOr<ir::Target> ParsedTarget(const std::string& text) {
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(text, &target, &why)) return absl::InvalidArgumentError(why);
  return target;
}

absl::StatusOr<std::vector<Task>> TasksOfModel(CommandContext& context, const std::string& path) {
  const Arguments& arguments = context.arguments;
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadTarget(arguments));
  HONE_ASSIGN_OR_RETURN(const ir::Target target, ParsedTarget(text));
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, path));
  measure::BuilderClient builder(LocalBuilder(context.arguments, context.environment),
                                 *context.environment.clock);
  auto kernels = compiler::ExtractKernels(std::move(graph), text, builder, ReadBatch(arguments),
                                          ReadCascades(arguments));
  if (!kernels.ok()) return CompileError(kernels.status());
  HONE_ASSIGN_OR_RETURN(const ir::AccuracyClass accuracy, ReadAccuracy(arguments));
  std::vector<Task> tasks;
  for (compiler::ModelKernel& kernel : *kernels) {
    if (kernel.count == 0) continue;
    const auto hash = Hash128::FromHex(kernel.hash);
    if (!hash) return absl::InternalError("a workload hash of another form");
    tasks.push_back(
        {{*hash, ir::NarrowedTo(target, kernel.workload).text, DeviceClassOf(arguments, target),
          accuracy, ir::VersionsOf(target.text).measurement_policy},
         std::move(kernel.workload),
         kernel.name,
         kernel.count});
  }
  return tasks;
}

/// The task of the log whose workload hash begins with `prefix`: for the target and device class
/// that were asked for, else for those with most records.
absl::StatusOr<Task> TaskOfLog(const Arguments& arguments, db::Database& log,
                               const TraceChoice& choice, const std::string& prefix) {
  if (!choice.HasLog()) {
    return absl::NotFoundError(
        fmt::format("'{}' is not a file, and there is no log{} in which a task could be looked up; "
                    "`hone tune MODEL` makes one",
                    prefix, choice.missing.empty() ? "" : fmt::format(" '{}'", choice.missing)));
  }
  const std::string& path = choice.path;
  std::vector<db::WorkloadRow> found;
  HONE_RETURN_IF_ERROR(log.ScanWorkloads([&](const db::WorkloadRow& row) {
    if (row.hash.ToHex().starts_with(prefix)) found.push_back(row);
    return absl::OkStatus();
  }));
  if (found.empty()) {
    return absl::NotFoundError(
        fmt::format("'{0}' is not a file, and no task of log '{1}' has a hash that begins with it; "
                    "`hone explain MODEL --db {1}` lists a model's tasks",
                    prefix, path));
  }
  if (found.size() > 1) {
    return absl::NotFoundError(
        fmt::format("log '{}' has {} tasks whose hash begins with '{}'; give more digits", path,
                    found.size(), prefix));
  }
  std::map<std::pair<std::string, std::string>, std::pair<int64_t, db::RecordKey>> keys;
  HONE_RETURN_IF_ERROR(log.ScanRecords({.workload = found[0].hash}, [&](const db::RankedRecord& r) {
    const db::RecordKey& key = r.record.key;
    auto& [count, kept] = keys[{key.target, key.device_class}];
    ++count;
    kept = key;
    return absl::OkStatus();
  }));
  Task task;
  HONE_ASSIGN_OR_RETURN(task.workload, ir::ParseWorkload(found[0].text));
  HONE_ASSIGN_OR_RETURN(const std::string given, ReadTarget(arguments));
  HONE_ASSIGN_OR_RETURN(const ir::Target any, ParsedTarget(given));
  const ir::Target target = ir::NarrowedTo(any, task.workload);
  HONE_ASSIGN_OR_RETURN(const ir::AccuracyClass accuracy, ReadAccuracy(arguments));
  const std::pair wanted(target.text, DeviceClassOf(arguments, target));
  const bool asked = arguments.Given("target") || arguments.Given("threads") ||
                     arguments.Given("device-class") || arguments.Given("accuracy");
  const auto it = keys.find(wanted);
  if (asked || it != keys.end() || keys.empty()) {
    task.key = {found[0].hash, target.text, wanted.second, accuracy,
                ir::VersionsOf(target.text).measurement_policy};
    return task;
  }
  task.key = std::max_element(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
               return a.second.first < b.second.first;
             })->second.second;
  return task;
}

/// The key, or that of its predictions where those alone stand in the log.
absl::StatusOr<db::RecordKey> KeyWithRecords(db::Database& log, const db::RecordKey& key) {
  const db::RecordKey predicted = db::PredictedKey(key);
  for (const db::RecordKey& each : {key, predicted}) {
    const auto best = log.BestRecord({.key = each});
    if (!best.ok()) return LogError(best.status());
    if (*best) return each;
  }
  return key;
}

ordered_json PointJson(const PointView& point) {
  auto why = ordered_json::array();
  for (const FeatureShare& share : point.why) {
    why.push_back({{"feature", share.name},
                   {"value", share.value},
                   {"default_value", share.default_value},
                   {"contribution", share.contribution}});
  }
  ordered_json object = {{"sketch", point.sketch},
                         {"decisions", point.decisions},
                         {"analytic",
                          {{"compute_us", point.analytic.compute_us},
                           {"feed_us", point.analytic.feed_us},
                           {"memory_us", point.analytic.memory_us},
                           {"transform_us", point.analytic.transform_us},
                           {"total_us", point.analytic.total_us},
                           {"place", point.analytic_place}}}};
  if (point.score) {
    object["model"] = {{"score", *point.score}, {"spread", point.spread}, {"place", point.place}};
    object["why"] = std::move(why);
  }
  return object;
}

ordered_json TraceJson(const ExplainedTrace& trace) {
  const db::TuningRecord& record = trace.record.record;
  ordered_json object = {{"record", record.id.ToHex()},
                         {"median_us", record.median_ns * 1e-3},
                         {"low_us", record.low_ns * 1e-3},
                         {"high_us", record.high_ns * 1e-3},
                         {"rigor", std::string(db::RigorName(trace.record.rigor))},
                         {"compared_default_us", nullptr},
                         {"proposer", trace.proposer},
                         {"trace", record.trace}};
  if (trace.compared_default_ns > 0) {
    object["compared_default_us"] = trace.compared_default_ns * 1e-3;
  }
  if (!trace.written_from.empty()) object["written_from"] = trace.written_from;
  if (trace.point) object.update(PointJson(*trace.point));
  return object;
}

/// What comparisons of the whole model say: those of the target, device class and accuracy class
/// that its tasks are asked for. Empty for a task alone, which is in many models.
absl::StatusOr<std::vector<db::ModelVerdict>> VerdictsOf(db::Database& log,
                                                         const std::vector<Task>& tasks) {
  std::vector<std::pair<Hash128, int64_t>> counted;
  for (const Task& task : tasks) {
    if (task.count == 0) return std::vector<db::ModelVerdict>();
    counted.emplace_back(task.key.workload, task.count);
  }
  auto verdicts = log.ModelVerdicts(db::ModelHash(std::move(counted)));
  if (!verdicts.ok()) return LogError(verdicts.status());
  const db::RecordKey& key = tasks.front().key;
  std::erase_if(*verdicts, [&](const db::ModelVerdict& v) {
    return v.subject != db::ModelVerdict::Subject::kTuning ||
           !db::SameButExtensions(v.target, key.target) || v.device_class != key.device_class ||
           v.measurement_policy != key.measurement_policy || v.accuracy > key.accuracy;
  });
  return verdicts;
}

ordered_json VerdictJson(const std::vector<db::ModelVerdict>& verdicts) {
  if (verdicts.empty()) return nullptr;
  const db::ModelVerdict& v = verdicts.front();
  return {{"verdict", VerdictWord(v)},     {"default_us", v.default_ns * 1e-3},
          {"tuned_us", v.tuned_ns * 1e-3}, {"ratio", v.ratio},
          {"ratio_low", v.ratio_low},      {"ratio_high", v.ratio_high},
          {"session", v.session.ToHex()}};
}

/// "" or the line that says that this model does not use the task's best record.
std::string BoundText(const db::ModelVerdict* bound) {
  return bound == nullptr ? ""
                          : "look-ups of this model: default; " + db::WhyDefault(*bound) + "\n";
}

/// Prints what --emit asks for, or puts it into the object: of the best Trace that is known and
/// used here, else of the default.
absl::Status Emit(CommandContext& context, const Task& task, const TaskExplanation& explained,
                  bool bound, const ir::Target& target, ordered_json* object) {
  std::string form = context.arguments.Text("emit");
  if (form == "ptx") {
    if (ir::AssemblyOf(target) != form) {
      return absl::InvalidArgumentError(fmt::format(
          "{} has no PTX; give a GPU, as --target cuda:sm_90a, or --emit code", target.text));
    }
    form = "code";
  }
  measure::BuilderClient builder(LocalBuilder(context.arguments, context.environment),
                                 *context.environment.clock);
  const std::string trace =
      bound || explained.best.empty() ? "" : explained.best[0].record.record.trace;
  HONE_ASSIGN_OR_RETURN(const std::string text,
                        EmittedCode(form, task.workload, trace, target, builder));
  (*object)["emitted"] = text;
  if (context.json()) return absl::OkStatus();
  context.out << fmt::format("task {}{}\n{}\n", task.key.workload.ToHex(),
                             task.name.empty() ? "" : "  " + task.name, text);
  return absl::OkStatus();
}

ordered_json TaskJson(const Task& task, const TaskExplanation& explained,
                      const db::ModelVerdict* bound) {
  auto sketches = ordered_json::array();
  for (const SketchView& sketch : explained.sketches) {
    sketches.push_back(
        {{"name", sketch.name}, {"points", sketch.points}, {"tables", sketch.tables}});
  }
  auto proposers = ordered_json::object();
  for (const auto& [name, counts] : explained.proposers) {
    proposers[name] = {{"candidates", counts.first}, {"wins", counts.second}};
  }
  auto best = ordered_json::array();
  for (const ExplainedTrace& trace : explained.best) best.push_back(TraceJson(trace));
  ordered_json object = {{"workload", task.key.workload.ToHex()},
                         {"name", task.name},
                         {"count", task.count},
                         {"target", task.key.target},
                         {"device_class", task.key.device_class},
                         {"space",
                          {{"hash", explained.space_hash},
                           {"product", explained.product},
                           {"admitted", explained.admitted},
                           {"sketches", std::move(sketches)}}},
                         {"outcomes", explained.outcomes},
                         {"proposers", std::move(proposers)},
                         {"located", explained.located},
                         {"judged", nullptr},
                         {"default", nullptr},
                         {"best", std::move(best)}};
  if (bound != nullptr) object["judged"] = db::WhyDefault(*bound);
  if (explained.default_trace) object["default"] = TraceJson(*explained.default_trace);
  if (explained.rank_correlation) object["rank_correlation"] = *explained.rank_correlation;
  if (explained.analytic_rank_correlation) {
    object["analytic_rank_correlation"] = *explained.analytic_rank_correlation;
  }
  return object;
}

std::string Indented(const std::string& text, const std::string& by) {
  std::string out = by;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) out += by;
  }
  if (!out.ends_with('\n')) out += '\n';
  return out;
}

std::string SpaceText(const TaskExplanation& explained) {
  std::string text = fmt::format("space {}: {} sketches, {} points, {} admitted\n",
                                 explained.space_hash.substr(0, 12), explained.sketches.size(),
                                 explained.product, explained.admitted);
  for (const SketchView& sketch : explained.sketches) {
    text += fmt::format("  {:<24} {:>10} points  {}\n", sketch.name, sketch.points,
                        fmt::join(sketch.tables, "; "));
  }
  return text;
}

std::string AttemptsText(const TaskExplanation& explained) {
  if (explained.outcomes.empty()) return "tried: nothing yet\n";
  std::string text = "tried: ";
  bool first = true;
  for (const auto& [outcome, count] : explained.outcomes) {
    text += fmt::format("{}{} {}", first ? "" : ", ", count, outcome);
    first = false;
  }
  text += "; proposed by ";
  first = true;
  for (const auto& [name, counts] : explained.proposers) {
    text += fmt::format("{}{} {}", first ? "" : ", ", name, counts.first);
    if (counts.second > 0) text += fmt::format(" ({} wins)", counts.second);
    first = false;
  }
  return text + "\n";
}

std::string WhyText(const PointView& point) {
  std::string text;
  for (const FeatureShare& share : point.why) {
    text += fmt::format("       {:>+8.4f}  {:<20} {:.4g}{}\n", share.contribution, share.name,
                        share.value,
                        share.value == share.default_value
                            ? ", as the default's"
                            : fmt::format(" (the default's {:.4g})", share.default_value));
  }
  return text;
}

std::string TraceText(const ExplainedTrace& trace, int place, int located, bool whole) {
  const db::TuningRecord& record = trace.record.record;
  std::string text =
      fmt::format("  {}. {:.2f} us [{:.2f}, {:.2f}], {}{}{}\n", place, record.median_ns * 1e-3,
                  record.low_ns * 1e-3, record.high_ns * 1e-3, db::RigorName(trace.record.rigor),
                  trace.compared_default_ns > 0
                      ? fmt::format(", {:.2f} x as fast as the default ({:.2f} us, in turns)",
                                    trace.compared_default_ns / record.median_ns,
                                    trace.compared_default_ns * 1e-3)
                      : "",
                  trace.proposer.empty() ? "" : ", proposed by " + trace.proposer);
  if (!trace.point) {
    const std::string from =
        trace.written_from.empty() ? "" : "; it was written from " + trace.written_from;
    return text + "     not in the search space of this version" + from + "\n";
  }
  const PointView& point = *trace.point;
  text += fmt::format("     sketch {}: {}\n", point.sketch, point.decisions);
  text += fmt::format(
      "     analytic model: {:.1f} us (compute {:.1f}, feed {:.1f}, memory {:.1f}, transform "
      "{:.1f}), its place {} of {} measured\n",
      point.analytic.total_us, point.analytic.compute_us, point.analytic.feed_us,
      point.analytic.memory_us, point.analytic.transform_us, point.analytic_place, located);
  if (point.score) {
    text += fmt::format("     trees: score {:+.3f} +- {:.3f}, their place {} of {} measured{}\n",
                        *point.score, point.spread, point.place, located,
                        point.why.empty() ? "" : "; against the default, by feature:");
    text += WhyText(point);
  }
  if (whole) text += "     trace\n" + Indented(record.trace, "       ");
  return text;
}

std::string TaskText(const Task& task, const TaskExplanation& explained, bool whole) {
  std::string text = fmt::format("task {}{}{}\n  {} on {}\n", task.key.workload.ToHex(),
                                 task.name.empty() ? "" : "  " + task.name,
                                 task.count > 0 ? fmt::format("  x{}", task.count) : "",
                                 task.key.target, task.key.device_class);
  if (whole) text += "workload\n" + Indented(ir::ToText(task.workload), "  ");
  text += SpaceText(explained) + AttemptsText(explained);
  if (explained.rank_correlation || explained.analytic_rank_correlation) {
    const auto number = [](const std::optional<double>& r) {
      return r ? fmt::format("{:+.2f}", *r) : std::string("-");
    };
    text += fmt::format("rank correlation with {} measured: trees {}, analytic model {}\n",
                        explained.located, number(explained.rank_correlation),
                        number(explained.analytic_rank_correlation));
  }
  if (explained.best.empty()) return text + "best: no record; the default schedule is used\n";
  text += "best, verified before screened; times of different comparisons may differ\n";
  int place = 0;
  for (const ExplainedTrace& trace : explained.best) {
    text += TraceText(trace, ++place, explained.located, whole);
  }
  return text;
}

absl::StatusOr<std::vector<Task>> TasksOfHash(const Arguments& arguments, db::Database& log,
                                              const TraceChoice& choice, const std::string& what) {
  if (what.empty() || what.size() > 32 ||
      what.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return absl::NotFoundError(fmt::format(
        "'{}' is neither a file nor the beginning of a task's hash (hexadecimal)", what));
  }
  std::vector<Task> tasks;
  HONE_ASSIGN_OR_RETURN(tasks.emplace_back(), TaskOfLog(arguments, log, choice, what));
  return tasks;
}

}  // namespace

absl::Status RunExplain(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  const std::string what = arguments.Text("MODEL|TASK");
  HONE_ASSIGN_OR_RETURN(const TraceChoice choice, ChooseTraces(arguments, context.environment));
  std::unique_ptr<db::Database> log = std::make_unique<db::MemoryDatabase>();
  if (choice.HasLog()) {
    auto opened = OpenUserLog(choice.path, {}, choice.name());
    if (!opened.ok()) return ChosenLogError(opened.status(), choice);
    log = *std::move(opened);
  }
  std::error_code ignored;
  const bool is_file = std::filesystem::exists(what, ignored);
  HONE_ASSIGN_OR_RETURN(std::vector<Task> tasks, is_file
                                                     ? TasksOfModel(context, what)
                                                     : TasksOfHash(arguments, *log, choice, what));
  const auto read = log->BeginRead();
  if (!read.ok()) return LogError(read.status());
  const auto model = LastModel(*log, tasks.empty() ? "" : tasks.front().key.target);
  if (!model.ok()) return LogError(model.status());
  HONE_ASSIGN_OR_RETURN(const std::vector<db::ModelVerdict> verdicts, VerdictsOf(*log, tasks));
  if (!verdicts.empty() && !context.json()) {
    context.out << fmt::format("{} (session {})\n\n", VerdictLine(verdicts.front()),
                               verdicts.front().session.ToHex().substr(0, 8));
  }
  const int top =
      arguments.Given("top") || !is_file ? static_cast<int>(arguments.Integer("top")) : 1;
  auto objects = ordered_json::array();
  bool known = false;
  const bool emits = arguments.Given("emit");
  for (Task& task : tasks) {
    const db::ModelVerdict* const bound = db::KeepsDefault(verdicts, task.key);
    HONE_ASSIGN_OR_RETURN(task.key, KeyWithRecords(*log, task.key));
    ir::Target target;
    std::string error;
    if (!ir::ParseTarget(task.key.target, &target, &error)) return absl::InternalError(error);
    const auto explained = ExplainTask(*log, task.key, task.workload, target,
                                       *model ? &**model : nullptr, BuilderVersionText(), top);
    if (!explained.ok()) return LogError(explained.status());
    known = known || !explained->best.empty();
    objects.push_back(TaskJson(task, *explained, bound));
    if (emits) {
      HONE_RETURN_IF_ERROR(
          Emit(context, task, *explained, bound != nullptr, target, &objects.back()));
      continue;
    }
    if (context.json()) continue;
    context.out << TaskText(task, *explained, !is_file) << BoundText(bound)
                << (tasks.size() > 1 ? "\n" : "");
  }
  const bool hints = is_file && !context.json() && !emits;
  if (hints && !known) {
    context.err << NothingKnownText(arguments, choice, what);
  } else if (hints) {
    context.out << fmt::format("`hone explain HASH{}` shows workload and Traces of one task\n",
                               choice.unasked ? "" : " --db " + ShellWord(choice.path));
  }
  context.json_result =
      JsonText(ordered_json({{"log", choice.HasLog() ? ordered_json(choice.path) : ordered_json()},
                             {"model", VerdictJson(verdicts)},
                             {"tasks", std::move(objects)}}));
  return absl::OkStatus();
}

}  // namespace hone::client
