#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/core/cpu.h"
#include "base/free_space.h"
#include "base/shell_word.h"
#include "base/status.h"
#include "client/bf16_gain.h"
#include "client/command.h"
#include "client/exit_code.h"
#include "client/json_text.h"
#include "client/live_lines.h"
#include "client/log_holdings.h"
#include "client/log_trace_source.h"
#include "client/machine_warnings.h"
#include "client/model_judge.h"
#include "client/model_loader.h"
#include "client/model_options.h"
#include "client/next_command.h"
#include "client/open_log.h"
#include "client/server_tune.h"
#include "client/shared_device.h"
#include "client/task_list.h"
#include "client/tune_budget.h"
#include "client/tune_progress.h"
#include "client/tune_signals.h"
#include "client/tune_tasks.h"
#include "client/user_cache.h"
#include "client/version_text.h"
#include "compiler/extract_kernels.h"
#include "db/prediction.h"
#include "ir/kind_name.h"
#include "ir/narrow_target.h"
#include "measure/building_measurer.h"
#include "measure/device.h"
#include "measure/device_probe.h"
#include "measure/helper_check.h"
#include "measure/kind_runner.h"
#include "measure/local_measurer.h"
#include "measure/others_watch.h"
#include "search/tuning_session.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

/// The command line that asks for the same again, on any machine that has the model.
std::string RepeatedBy(const Arguments& arguments, const ir::Target& target,
                       const TuneBudget& budget) {
  std::string line = "hone tune " + ShellWord(ModelName(arguments.Text("MODEL")) + ".onnx");
  const auto add = [&](std::string_view name, const std::string& value) {
    line += fmt::format(" --{} {}", name, ShellWord(value));
  };
  add("target", target.text);
  add("seed", std::to_string(arguments.Integer("seed")));
  for (const char* name : {"dim", "shape", "bind", "cut", "input"}) {
    for (const std::string& value : arguments.List(name)) add(name, value);
  }
  if (arguments.Given("inputs")) add("inputs", arguments.Text("inputs"));
  for (const char* name : {"batch", "cascades", "accuracy", "precision", "measure"}) {
    if (arguments.Given(name)) add(name, arguments.Text(name));
  }
  if (budget.seconds > 0) add("seconds", fmt::format("{}", budget.seconds));
  if (budget.trials > 0) add("trials", std::to_string(budget.trials));
  if (arguments.Given("until")) add("until", arguments.Text("until"));
  return line;
}

/// What `hone report` and people want to know of a task.
ordered_json TasksJson(const std::vector<search::TuningTask>& tasks) {
  auto list = ordered_json::array();
  for (const search::TuningTask& task : tasks) {
    list.push_back({{"workload", task.hash.ToHex()}, {"name", task.name}, {"count", task.count}});
    if (task.other_count > 0) list.back()["other_count"] = task.other_count;
  }
  return list;
}

/// One run of `hone tune`.
class Tuning {
 public:
  Tuning(CommandContext& context, TuneSignals& signals)
      : context_(context),
        arguments_(context.arguments),
        clock_(*context.environment.clock),
        signals_(signals) {}

  absl::Status Run();

 private:
  absl::Status Prepare();
  std::unique_ptr<compiler::TraceSource> KnownOfBatches() const;
  absl::Status CheckMeasurable() const;
  void Announce(const TuneSoFar& so_far) const;
  void WarnOfOthers(measure::OthersWatch& load) const;
  absl::Status DryRun();
  absl::Status OpenLog();
  absl::Status TuneTasks();
  absl::Status PredictTasks();
  /// The session on `measurer`; `local`, if any, is the same.
  absl::Status Search(search::SessionOptions options, measure::Measurer& measurer,
                      const measure::LocalMeasurer* local, const std::vector<double>& bounds,
                      const JudgedModel& judged);
  std::vector<double> MeasureBounds() const;
  measure::LocalMeasurerOptions MeasurerOptions() const;
  search::SessionOptions MakeSessionOptions() const;
  absl::Status Ended(const search::TuningSession& session, const absl::Status& status) const;
  std::string WhatStands(int64_t answered, bool usable) const;

  CommandContext& context_;
  const Arguments& arguments_;
  const MonotonicClock& clock_;
  const SystemWallClock wall_clock_;
  TuneSignals& signals_;
  ir::Target target_;
  TuneBudget budget_;
  ir::AccuracyClass accuracy_ = ir::AccuracyClass::kDefault;
  bool predicted_ = false;  ///< nothing is measured (--measure predicted)
  measure::HostDevice host_;
  std::optional<SharedDevice> shared_;  ///< of a device that is not the host
  std::vector<search::TuningTask> tasks_;
  TunedWay way_;
  std::string path_;
  std::unique_ptr<db::LogFile> log_;
};

absl::Status Tuning::Prepare() {
  HONE_ASSIGN_OR_RETURN(budget_, ReadBudget(arguments_, wall_clock_));
  HONE_ASSIGN_OR_RETURN(accuracy_, ReadAccuracy(arguments_));
  HONE_ASSIGN_OR_RETURN(const std::string target_text, ReadTarget(arguments_));
  std::string why;
  if (!ir::ParseTarget(target_text, &target_, &why)) return absl::InvalidArgumentError(why);
  HONE_ASSIGN_OR_RETURN(path_, UserLogPath(arguments_, context_.environment));
  predicted_ = arguments_.Text("measure") == "predicted";
  HONE_RETURN_IF_ERROR(CheckMeasurable());
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments_, arguments_.Text("MODEL")));
  if (!context_.json())
    context_.err << EmptyInputsNote(arguments_, InputsOf(graph))
                 << KeptInF32Note(arguments_, target_.text);
  measure::BuilderClient builder(LocalBuilder(arguments_, context_.environment), clock_);
  const std::unique_ptr<compiler::TraceSource> known = KnownOfBatches();
  auto ways = compiler::ExtractWays(std::move(graph), target_.text, builder, ReadBatch(arguments_),
                                    ReadCascades(arguments_), *known);
  if (!ways.ok()) return CompileError(ways.status());
  way_ = TunedWay::Of(*ways, ReadBatch(arguments_), ReadCascades(arguments_));
  std::vector<const ir::Workload*> workloads;
  for (const compiler::ModelKernel& kernel : ways->steps.kernels)
    workloads.push_back(&kernel.workload);
  target_ = ir::NarrowedTo(target_, workloads);
  tasks_ = MakeTasks(std::move(ways->steps.kernels), std::move(ways->others), target_);
  if (predicted_) {
    const db::Device device = db::PredictedDevice(target_.text);
    host_.device_class = device.device_class;
    host_.fingerprint = device.fingerprint;
    return absl::OkStatus();
  }
  if (arguments_.Flag("dry-run")) {
    host_.device_class = measure::DeviceClassFor(target_);
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(host_, measure::DescribeDevice(MeasurerOptions().runner.device));
  if (measure::RunsOnHost(target_.text)) return absl::OkStatus();
  shared_.emplace(arguments_.Text("lock-folder"), host_, context_.err);
  return shared_->Usable();
}

/// Nothing where the log cannot be read: OpenLog says why.
std::unique_ptr<compiler::TraceSource> Tuning::KnownOfBatches() const {
  std::error_code ignored;
  if (std::filesystem::exists(path_, ignored)) {
    if (auto log = OpenUserLog(path_, {}); log.ok()) {
      auto source = LogTraceSource::Create(
          *std::move(log),
          {.device_class = measure::DeviceClassFor(target_), .accuracy = accuracy_});
      if (source.ok()) return *std::move(source);
    }
  }
  return std::make_unique<compiler::DefaultTraceSource>();
}

absl::Status Tuning::CheckMeasurable() const {
  const measure::LocalMeasurerOptions options = MeasurerOptions();
  if (predicted_) return measure::CheckBuilder(options.builder, clock_);
  std::string why;
  if (!ir::HostCanRun(target_, &why) && !arguments_.Flag("dry-run")) {
    return absl::FailedPreconditionError(fmt::format(
        "candidates for {} cannot be measured here: {}; else tune on a machine that can run them "
        "and compile from that log, or let the analytic model predict times: --measure predicted",
        target_.text, why));
  }
  return measure::CheckHelpers(options.builder, options.runner, clock_);
}

void Tuning::Announce(const TuneSoFar& so_far) const {
  context_.err << fmt::format("{} tasks for {} on {}\nlog {}\nbudget {}, {}\n", tasks_.size(),
                              target_.text, host_.device_class, path_, BudgetText(budget_),
                              EndText(budget_, so_far, wall_clock_))
               << (predicted_ ? "" : ManyThreadsText(target_.threads, CpusHere()));
}

/// What other programs do, since `load` began to look, which must be long enough to tell.
void Tuning::WarnOfOthers(measure::OthersWatch& load) const {
  constexpr int kLooks = 7;
  std::optional<double> foreign = load.SinceLast();
  for (int look = 0; look < kLooks && !foreign; ++look) {
    clock_.SleepNs(measure::OthersWatch::kLeastNs / (kLooks - 1));
    foreign = load.SinceLast();
  }
  if (foreign) context_.err << BusyMachineText(*foreign);
}

absl::Status Tuning::DryRun() {
  HONE_ASSIGN_OR_RETURN(
      const LogHoldings log,
      ReadHoldings(path_, LogNameOf(arguments_),
                   {.device_class = host_.device_class,
                    .accuracy = accuracy_,
                    .predictions = predicted_ ? db::Predictions::kTaken : db::Predictions::kTold},
                   tasks_, target_, MakeSessionOptions().request));
  const TuneSoFar so_far = log.unfinished.so_far;
  Announce(so_far);
  ordered_json tasks = TasksJson(tasks_);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    const search::TuningTask& t = tasks_[i];
    const LogHoldings::Task& held = log.tasks[i];
    tasks[i]["rung"] = held.rung;
    tasks[i]["median_us"] = held.median_ns * 1e-3;
    if (context_.json()) continue;
    const std::string best =
        held.median_ns > 0 ? fmt::format(", {} {:.2f} us", held.rung, held.median_ns * 1e-3) : "";
    context_.out << fmt::format("{} x{} {} {:.1f} MFLOP{}\n", t.hash.ToHex(), t.count, t.name,
                                t.flop * 1e-6, best);
  }
  if (!context_.json()) context_.out << HoldingsText(log);
  ordered_json object = {{"log", path_},
                         {"target", target_.text},
                         {"device_class", host_.device_class},
                         {"seed", arguments_.Integer("seed")},
                         {"seconds", budget_.seconds},
                         {"trials", budget_.trials},
                         {"ends", ExpectedEnd(budget_, so_far, wall_clock_)},
                         {"ends_at_the_latest", SecondsLeft(budget_, 0, wall_clock_) >= 0},
                         {"log_exists", log.exists},
                         {"tasks_with_records", log.NumExact()},
                         {"unfinished_session", log.unfinished.id},
                         {"used_seconds", so_far.seconds},
                         {"tasks", std::move(tasks)}};
  context_.json_result = JsonText(object);
  return absl::OkStatus();
}

absl::Status Tuning::OpenLog() {
  if (!arguments_.Given("db") && context_.environment.log_path.empty()) {
    std::error_code error;
    std::filesystem::create_directories(context_.environment.data_folder, error);
    if (error) {
      return absl::PermissionDeniedError(
          fmt::format("cannot make the folder '{}' for the log: {}; name a log with --db LOG",
                      context_.environment.data_folder, error.message()));
    }
  }
  auto log = OpenUserLog(path_, {.mode = db::OpenMode::kWrite}, LogNameOf(arguments_));
  if (absl::IsUnavailable(log.status())) {
    const std::string elsewhere =
        "; or tune into another log (--db) and merge it later (hone db merge)";
    return WithExitCode(absl::UnavailableError(StatusMessage(log.status()) + elsewhere),
                        ExitCodeOf(log.status()));
  }
  HONE_ASSIGN_OR_RETURN(log_, std::move(log));
  return absl::OkStatus();
}

measure::LocalMeasurerOptions Tuning::MeasurerOptions() const {
  constexpr double kPauseShare = 0.1, kOracleShare = 0.1, kUnlimitedPause = 60;
  constexpr int64_t kLeastOracleNs = 50'000'000;
  measure::LocalMeasurerOptions o;
  o.builder.processes = UsableCores();
  o.runner.device = target_.kind + ":0";
  o.builder.cache = o.oracle.cache = OpenUserCache(arguments_, context_.environment);
  o.builder.job_timeout_ns = 20'000'000'000;
  const int cores = measure::HostCoresOf(target_);
  o.alternate = cores > 0 && cores + o.builder.processes > UsableCores();
  o.device_class = host_.device_class;
  const double seconds = SecondsLeft(budget_, 0, wall_clock_);
  o.max_pause_ns =
      static_cast<int64_t>(1e9 * (seconds > 0 ? kPauseShare * seconds : kUnlimitedPause));
  if (seconds > 0 && !tasks_.empty()) {
    // Once per task: many tasks and little time get fewer points each.
    const auto share =
        static_cast<int64_t>(1e9 * kOracleShare * seconds / static_cast<double>(tasks_.size()));
    o.oracle.budget_ns = std::clamp(share, kLeastOracleNs, o.oracle.budget_ns);
  }
  return o;
}

search::SessionOptions Tuning::MakeSessionOptions() const {
  search::SessionOptions options;
  options.seconds = budget_.seconds;
  options.trials = budget_.trials;
  options.until_unix_ns = budget_.until_unix_ns;
  options.seed = static_cast<uint64_t>(arguments_.Integer("seed"));
  ordered_json request = {{"model", ModelName(arguments_.Text("MODEL"))},
                          {"target", target_.text},
                          {"device_class", host_.device_class},
                          {"seconds", budget_.seconds},
                          {"trials", budget_.trials},
                          {"until", arguments_.Given("until") ? arguments_.Text("until") : ""},
                          {"seed", arguments_.Integer("seed")},
                          {"accuracy", std::string(ir::AccuracyClassName(accuracy_))},
                          {"command", RepeatedBy(arguments_, target_, budget_)},
                          {"tasks", TasksJson(tasks_)}};
  if (predicted_) request["measure"] = "predicted";
  options.request = JsonText(request);
  options.versions = VersionJson();
  options.target = target_;
  options.accuracy = accuracy_;
  options.device = {host_.device_class, host_.fingerprint};
  options.builder_version = BuilderVersionText();
  options.interrupted = TuneSignals::interrupted();
  options.predicted = predicted_;
  options.choose_threads = true;
  options.free_bytes = [path = path_] { return FreeBytes(path); };
  return options;
}

std::vector<double> Tuning::MeasureBounds() const {
  std::vector<double> bounds(tasks_.size(), 0.0);
  const auto rates = measure::MeasureRates(target_, clock_);
  for (size_t i = 0; rates.ok() && i < tasks_.size(); ++i)
    bounds[i] = rates->BoundNs(ir::CostOf(*tasks_[i].workload));
  return bounds;
}

std::string Tuning::WhatStands(int64_t answered, bool usable) const {
  if (!usable) {
    return fmt::format("no usable result exists yet; the same command goes on from '{}'", path_);
  }
  const std::string log =
      LogNameOf(arguments_) == LogName::kGiven ? " --db " + ShellWord(path_) : "";
  return fmt::format(
      "a usable result exists: the log '{}' has the times of {} candidates, `hone compile {}{}{}` "
      "uses them, and the same command goes on from there",
      path_, answered, ShellWord(arguments_.Text("MODEL")), log,
      predicted_ ? " --allow-predicted" : "");
}

absl::Status Tuning::TuneTasks() {
  const int64_t start_ns = clock_.NowNs();
  const std::vector<double> bounds = MeasureBounds();
  search::SessionOptions options = MakeSessionOptions();
  const double limit = SecondsLeft(budget_, 0, wall_clock_);
  const double judged = limit >= 0 ? std::clamp(0.03 * limit, 0.5, 6.0) : 1;
  ModelJudge judge(context_, {.target = target_.text,
                              .way = way_,
                              .device_class = host_.device_class,
                              .log_path = path_,
                              .accuracy = accuracy_,
                              .seconds = judged,
                              .interrupted = TuneSignals::interrupted()});
  judge.MeasureDefault();
  options.reserve_seconds = judge.ExpectedSeconds();
  options.before_end = [&](search::TuningSession& s) { return judge.Judge(s); };
  options.used_seconds = static_cast<double>(clock_.NowNs() - start_ns) * 1e-9;
  measure::LocalMeasurerOptions measuring = MeasurerOptions();
  if (shared_) HONE_RETURN_IF_ERROR(shared_->Share(measuring, *log_));
  measure::LocalMeasurer measurer(std::move(measuring), clock_);
  return Search(std::move(options), measurer, &measurer, bounds, judge.judged());
}

absl::Status Tuning::PredictTasks() {
  std::vector<double> bounds;
  for (const search::TuningTask& task : tasks_) {
    const bool nominal = measure::ProbesOfKinds().Of(target_).Nominal(target_).has_value();
    bounds.push_back(nominal ? task.bound_ns : 0);
  }
  measure::BuildingMeasurer measurer(MeasurerOptions().builder, clock_);
  const char* const why = "nothing was measured, all times are predictions of the analytic model";
  return Search(MakeSessionOptions(), measurer, nullptr, bounds, {.skipped = why});
}

absl::Status Tuning::Search(search::SessionOptions options, measure::Measurer& measurer,
                            const measure::LocalMeasurer* local, const std::vector<double>& bounds,
                            const JudgedModel& judged) {
  search::TuningSession session(*log_, measurer, clock_, wall_clock_, std::move(options));
  HONE_RETURN_IF_ERROR(Ended(session, session.Start(tasks_)));
  signals_.SetMessage("interrupted; " +
                      WhatStands(session.tuner().answered(), session.tuner().TotalNs(true) > 0));
  signals_.BeginSession();
  if (session.resumed()) {
    context_.err << fmt::format("going on with session {}: {} candidates, {} of the time used\n",
                                session.id().ToHex(), session.tuner().answered(),
                                Duration(session.ElapsedSeconds()));
  }
  TuneProgress progress(context_);
  // The log that nobody names is found without being named.
  std::string from = arguments_.GivenOnLine("db") ? "--db " + ShellWord(path_) : "";
  if (predicted_) from += from.empty() ? "--allow-predicted" : " --allow-predicted";
  const std::string next = CompileLine(arguments_, target_, from);
  const TuneView view{session, local, budget_, bounds, judged, path_, next, wall_clock_};
  const absl::Status run = session.Run([&](const search::TuningSession& s) {
    signals_.SetMessage("interrupted; " +
                        WhatStands(s.tuner().answered(), s.tuner().TotalNs(true) > 0));
    progress.Show(view);
  });
  HONE_RETURN_IF_ERROR(Ended(session, run));
  progress.End(view);
  if (context_.json()) {
    context_.json_result = TuneJson(view);
  } else {
    context_.out << TuneText(view, LineCellsOf(STDOUT_FILENO)) << std::flush;
  }
  const bool usable = session.tuner().TotalNs(true) > 0;
  const std::string stands = WhatStands(session.tuner().answered(), usable);
  if (session.reason() == search::StopReason::kDiskFull) {
    return absl::ResourceExhaustedError(
        fmt::format("stopped before the disk of the log '{}' is full, as less than {} MB are free; "
                    "make room there. {}",
                    path_, search::SessionOptions().least_free_bytes / 1'000'000, stands));
  }
  if (shared_ && shared_->bad()) return shared_->Usable();
  if (session.reason() == search::StopReason::kInterrupted) {
    return absl::CancelledError("interrupted; " + stands);
  }
  // Something was tried, and nothing ran: what follows in a script would fail.
  if (session.tuner().answered() > 0 && !usable) {
    return absl::InternalError(fmt::format("no candidate could be built and measured; {}", stands));
  }
  return absl::OkStatus();
}

/// An error of the session with its exit code and what stands in the log.
absl::Status Tuning::Ended(const search::TuningSession& session, const absl::Status& status) const {
  switch (status.code()) {
    case absl::StatusCode::kOk: return status;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss: return WithExitCode(status, ExitCode::kLog);
    case absl::StatusCode::kResourceExhausted: {
      const bool usable = session.tuner().TotalNs(true) > 0;
      return absl::ResourceExhaustedError(
          fmt::format("{}; make room. {}", StatusMessage(status),
                      WhatStands(session.tuner().answered(), usable)));
    }
    default: return status;
  }
}

absl::Status Tuning::Run() {
  // From before the preparations on, so that there is something to tell after them.
  HONE_ASSIGN_OR_RETURN(const std::string asked, ReadTarget(arguments_));
  const auto others = measure::WatchOthersOf(fmt::format("{}:0", ir::KindNameOf(asked)), clock_);
  HONE_RETURN_IF_ERROR(Prepare());
  if (arguments_.Flag("dry-run")) return DryRun();
  HONE_RETURN_IF_ERROR(OpenLog());
  const auto unfinished = FindUnfinished(*log_, MakeSessionOptions().request);
  if (!unfinished.ok()) return LogError(unfinished.status());
  Announce(unfinished->so_far);
  if (!predicted_ && others) WarnOfOthers(*others);
  context_.err << TaskListText(ListedTasks(tasks_), LineCellsOf(STDERR_FILENO)) << std::flush;
  return predicted_ ? PredictTasks() : TuneTasks();
}

}  // namespace

absl::Status RunTune(CommandContext& context) {
  if (context.arguments.Given("server")) {
    for (const char* option : {"db", "dry-run", "inputs", "measure"}) {
      // One of the config file is for tunings on this machine.
      if (!context.arguments.GivenOnLine(option)) continue;
      return WithExitCode(
          absl::InvalidArgumentError(
              fmt::format("--server excludes --{}, which is for tuning on this machine", option)),
          ExitCode::kUsage);
    }
    return TuneOnServer(context);
  }
  for (const char* option : {"project", "priority", "device-class"}) {
    // One of the config file is for the sessions that do run on the farm.
    if (!context.arguments.GivenOnLine(option)) continue;
    return WithExitCode(absl::InvalidArgumentError(fmt::format(
                            "--{} is for a farm's sessions: give --server ADDRESS too", option)),
                        ExitCode::kUsage);
  }
  TuneSignals signals(context.json());
  return Tuning(context, signals).Run();
}

}  // namespace hone::client
