#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "base/core/cpu.h"
#include "base/status.h"
#include "base/versions.h"
#include "client/command.h"
#include "client/exit_code.h"
#include "client/log_trace_source.h"
#include "client/model_loader.h"
#include "client/model_options.h"
#include "client/version_text.h"
#include "compiler/extract_kernels.h"
#include "db/log_file.h"
#include "graph/group_cost.h"
#include "ir/hash.h"
#include "measure/device.h"
#include "measure/local_measurer.h"
#include "search/session.h"

namespace hone::client {
namespace {

std::atomic<bool> g_interrupted{false};
void OnSignal(int) { g_interrupted.store(true); }

/// SIGINT and SIGTERM finish the record; a closed terminal leaves the tuning running.
class SignalScope {
 public:
  SignalScope() {
    g_interrupted.store(false);
    struct sigaction action = {};
    action.sa_handler = OnSignal;
    sigaction(SIGINT, &action, &int_);
    sigaction(SIGTERM, &action, &term_);
    action.sa_handler = SIG_IGN;
    sigaction(SIGHUP, &action, &hup_);
  }
  ~SignalScope() {
    sigaction(SIGINT, &int_, nullptr);
    sigaction(SIGTERM, &term_, nullptr);
    sigaction(SIGHUP, &hup_, nullptr);
  }

 private:
  struct sigaction int_ = {}, term_ = {}, hup_ = {};
};

/// The least time of a kernel on this target, ns: multiply-adds at two per lane and nominal cycle,
/// a quarter of them where Winograd's F(4×4) may be used, or its bytes at a generous last-level
/// cache rate.
double BoundNs(const graph::GroupCost& cost, const ir::Target& target) {
  constexpr double kGigahertz = 4.5, kWinograd = 4, kBytesPerNs = 200;
  const double compute = static_cast<double>(cost.flops) /
                         (2.0 * target.lanes * 2 * target.threads * kGigahertz) / kWinograd;
  return std::max(compute, static_cast<double>(cost.Bytes()) / (kBytesPerNs * target.threads));
}

std::vector<search::TuningTask> MakeTasks(std::vector<compiler::ModelKernel> kernels,
                                          const ir::Target& target) {
  std::vector<search::TuningTask> tasks;
  for (auto& k : kernels) {
    search::TuningTask t;
    const graph::GroupCost cost = graph::CostOf(k.workload);
    t.hash = Hash128::FromHex(k.hash).value_or(Hash128{});
    t.name = k.name;
    t.count = k.count;
    t.flop = static_cast<double>(cost.flops + cost.other_flops);
    t.bound_ns = BoundNs(cost, target);
    t.workload = std::make_shared<const ir::Workload>(std::move(k.workload));
    if (t.count > 0) tasks.push_back(std::move(t));
  }
  return tasks;
}

std::string Duration(double seconds) {
  const auto s = static_cast<int64_t>(seconds + 0.5);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string TaskLine(const search::Session& session, int i) {
  const search::TaskSearch& s = session.tuner().search(i);
  const search::TuningTask& t = session.tuner().task(i);
  const double gain = s.best_ns() > 0 && s.default_ns() > 0 ? s.default_ns() / s.best_ns() : 1;
  return fmt::format(
      "{:3} {:28.28} x{:<3} {:10.1f} us  {:5.2f} x default  {:8.1f} GFLOP/s  {:4} of {:5} trials\n",
      i, t.name, t.count, s.best_ns() * 1e-3, gain, s.best_ns() > 0 ? t.flop / s.best_ns() : 0,
      s.trials(), s.space().admitted());
}

/// The live table on a terminal, a plain line now and then elsewhere.
class Progress {
 public:
  Progress(CommandContext& context, double seconds) : context_(context), seconds_(seconds) {}

  void operator()(const search::Session& session) {
    const double now = session.ElapsedSeconds();
    const double pause = context_.environment.error_is_terminal ? 0.5 : 10;
    if (now - last_ < pause) return;
    last_ = now;
    const search::Tuner& t = session.tuner();
    std::string text;
    if (context_.environment.error_is_terminal) {
      if (lines_ > 0) text += fmt::format("\x1b[{}F\x1b[J", lines_);
      for (int i = 0; i < t.num_tasks(); ++i) text += TaskLine(session, i);
      lines_ = t.num_tasks() + 1;
    }
    std::string failures;
    for (const auto& [outcome, n] : session.failures())
      failures += fmt::format(", {} {}", n, measure::ToString(outcome));
    text += fmt::format(
        "{} of {}  {} candidates measured{}; kernels {:.3f} ms by default, {:.3f} ms now\n",
        Duration(now), seconds_ > 0 ? Duration(seconds_) : "-", t.answered(), failures,
        t.TotalNs(false) * 1e-6, t.TotalNs(true) * 1e-6);
    context_.err << text << std::flush;
  }

 private:
  CommandContext& context_;
  double seconds_;
  double last_ = -1e9;
  int lines_ = 0;
};

nlohmann::ordered_json ResultJson(const search::Session& session, const std::string& log) {
  const search::Tuner& t = session.tuner();
  auto tasks = nlohmann::ordered_json::array();
  std::map<search::Proposer, search::TaskSearch::ProposerCount> proposers;
  auto correlations = nlohmann::ordered_json::array();
  for (int i = 0; i < t.num_tasks(); ++i) {
    const search::TaskSearch& s = t.search(i);
    const search::TaskVerdict& v = session.verdicts()[static_cast<size_t>(i)];
    tasks.push_back({{"workload", t.task(i).hash.ToHex()},
                     {"name", t.task(i).name},
                     {"count", t.task(i).count},
                     {"default_us", s.default_ns() * 1e-3},
                     {"best_us", s.best_ns() * 1e-3},
                     {"trials", s.trials()},
                     {"compared", v.compared},
                     {"replaced", v.replaced}});
    for (const auto& [p, c] : s.counts())
      proposers[p].candidates += c.candidates, proposers[p].wins += c.wins;
    if (auto r = s.RankCorrelationOnRandom(t.model())) correlations.push_back(*r);
  }
  nlohmann::ordered_json by = nlohmann::ordered_json::object();
  for (const auto& [p, c] : proposers)
    by[std::string(search::ProposerName(p))] = {{"candidates", c.candidates}, {"wins", c.wins}};
  return {{"log", log},
          {"session", session.id().ToHex()},
          {"resumed", session.resumed()},
          {"reason", std::string(search::StopReasonName(session.reason()))},
          {"seconds", session.ElapsedSeconds()},
          {"attempts", t.attempts()},
          {"default_us", t.TotalNs(false) * 1e-3},
          {"best_us", t.TotalNs(true) * 1e-3},
          {"proposers", by},
          {"rank_correlation_on_random", correlations},
          {"tasks", tasks}};
}

/// --seconds, else --minutes, else ten minutes unless another limit is given.
double SecondsOf(const Arguments& a) {
  if (a.Given("seconds")) return a.Number("seconds");
  if (a.Given("minutes")) return a.Number("minutes") * 60;
  return a.Given("trials") || a.Given("until") ? 0 : 600;
}

absl::StatusOr<std::string> LogPath(CommandContext& context) {
  if (context.arguments.Given("db")) return context.arguments.Text("db");
  if (context.environment.data_folder.empty()) {
    return WithExitCode(
        absl::InvalidArgumentError("no home folder to keep the log in; name one with --db FILE"),
        ExitCode::kUsage);
  }
  std::error_code error;
  std::filesystem::create_directories(context.environment.data_folder, error);
  return context.environment.data_folder + "/tune.db";
}

measure::LocalMeasurerOptions MeasurerOptions(const ir::Target& target,
                                              const std::string& device_class) {
  measure::LocalMeasurerOptions o;
  o.builder.processes = UsableCores();
  o.builder.job_timeout_ns = 20'000'000'000;
  o.alternate = target.threads + o.builder.processes > UsableCores();
  o.device_class = device_class;
  return o;
}

search::SessionOptions MakeSessionOptions(const Arguments& arguments, const ir::Target& target,
                                          const measure::HostDevice& host) {
  search::SessionOptions options;
  options.seconds = SecondsOf(arguments);
  options.trials = arguments.Given("trials") ? arguments.Integer("trials") : 0;
  options.seed = static_cast<uint64_t>(arguments.Integer("seed"));
  options.request = nlohmann::ordered_json({{"model", ModelName(arguments.Text("MODEL"))},
                                            {"target", target.text},
                                            {"seconds", options.seconds},
                                            {"trials", options.trials},
                                            {"seed", arguments.Integer("seed")}})
                        .dump();
  options.versions = VersionJson();
  options.target = target;
  options.device = {host.device_class, host.fingerprint};
  options.builder_version = BuilderVersionText();
  options.interrupted = &g_interrupted;
  return options;
}

void Report(CommandContext& context, const search::Session& session, const std::string& log) {
  const search::Tuner& t = session.tuner();
  if (context.json()) {
    context.json_result = ResultJson(session, log).dump();
    return;
  }
  for (int i = 0; i < t.num_tasks(); ++i) context.out << TaskLine(session, i);
  context.out << fmt::format(
      "{}: {} candidates in {}; kernels {:.3f} ms by default, {:.3f} ms tuned ({:.2f} x)\n"
      "log {}, session {}\n",
      search::StopReasonName(session.reason()), t.answered(), Duration(session.ElapsedSeconds()),
      t.TotalNs(false) * 1e-6, t.TotalNs(true) * 1e-6,
      t.TotalNs(false) / std::max(1.0, t.TotalNs(true)), log, session.id().ToHex());
}

}  // namespace

absl::Status RunTune(CommandContext& context) {
  const Arguments& arguments = context.arguments;
  const MonotonicClock& clock = *context.environment.clock;
  const SystemWallClock wall_clock;
  HONE_ASSIGN_OR_RETURN(const std::string target_text, ReadTarget(arguments));
  ir::Target target;
  std::string error;
  if (!ir::ParseTarget(target_text, &target, &error)) return absl::InvalidArgumentError(error);
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, arguments.Text("MODEL")));
  std::vector<search::TuningTask> tasks;
  {
    measure::BuilderClient builder(LocalBuilder(), clock);
    auto kernels = compiler::ExtractKernels(std::move(graph), target.text, builder);
    if (!kernels.ok()) return CompileError(kernels.status());
    tasks = MakeTasks(*std::move(kernels), target);
  }
  HONE_ASSIGN_OR_RETURN(const std::string path, LogPath(context));
  const double seconds = SecondsOf(arguments);
  const int64_t trials = arguments.Given("trials") ? arguments.Integer("trials") : 0;
  context.err << fmt::format("{} tasks for {}, log {}, budget {}{}\n", tasks.size(), target.text,
                             path, seconds > 0 ? Duration(seconds) : "without a time limit",
                             trials > 0 ? fmt::format(", {} trials", trials) : "");
  if (arguments.Flag("dry-run")) {
    for (const auto& t : tasks)
      context.out << fmt::format("{} x{} {} {:.1f} MFLOP\n", t.hash.ToHex(), t.count, t.name,
                                 t.flop * 1e-6);
    return absl::OkStatus();
  }
  const measure::HostDevice host = measure::DescribeHost();
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<db::LogFile> log,
                        db::OpenLog(path, {.mode = db::OpenMode::kWrite}));
  SignalScope signals;
  measure::LocalMeasurer measurer(MeasurerOptions(target, host.device_class), clock);
  search::SessionOptions options = MakeSessionOptions(arguments, target, host);
  search::Session session(*log, measurer, clock, wall_clock, std::move(options));
  HONE_RETURN_IF_ERROR(session.Start(std::move(tasks)));
  if (session.resumed())
    context.err << fmt::format("going on with session {}\n", session.id().ToHex());
  Progress progress(context, seconds);
  HONE_RETURN_IF_ERROR(session.Run([&](const search::Session& s) { progress(s); }));
  Report(context, session, path);
  if (session.reason() == search::StopReason::kInterrupted) {
    return absl::CancelledError(fmt::format(
        "interrupted after {} candidates; what was measured stands in '{}' and the same command "
        "goes on from there",
        session.tuner().answered(), path));
  }
  return absl::OkStatus();
}

}  // namespace hone::client
