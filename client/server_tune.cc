#include "client/server_tune.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

#include "base/file.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "base/status.h"
#include "client/exit_code.h"
#include "client/farm_judge.h"
#include "client/farm_request.h"
#include "client/json_text.h"
#include "client/live_lines.h"
#include "client/live_watch.h"
#include "client/model_inputs.h"
#include "client/model_loader.h"
#include "client/model_options.h"
#include "client/next_command.h"
#include "client/server_connection.h"
#include "client/server_options.h"
#include "client/server_progress.h"
#include "client/task_list.h"
#include "client/tune_budget.h"
#include "client/verdict_text.h"
#include "ir/target.h"
#include "ir/text.h"
#include "ir/workload_cost.h"
#include "proto/probed_rates.h"

namespace hone::client {
namespace {

using nlohmann::ordered_json;

constexpr char kNotAsked[] =
    "as a farm compares kernels only; with --judge a device compares the whole model";

// What another session of the search was told is not known here: null, not a time of nothing.
ordered_json Us(double ns) { return ns > 0 ? ordered_json(ns * 1e-3) : ordered_json(); }

std::atomic<bool> g_detach{false};
void OnSignal(int) { g_detach.store(true); }

/// Ctrl-C detaches, for as long as this lives.
class WhileDetachable {
 public:
  WhileDetachable() {
    g_detach.store(false);
    std::signal(SIGINT, OnSignal);
  }
  ~WhileDetachable() { std::signal(SIGINT, SIG_DFL); }
  WhileDetachable(const WhileDetachable&) = delete;
  WhileDetachable& operator=(const WhileDetachable&) = delete;
};

/// The rooflines of a session's tasks by what the fastest probed device of its class says of
/// itself, ns; 0 where that is not known. (What a task carries, schedule::LeastNs, is what it is
/// chosen by.)
std::vector<double> ProbedBounds(ServerConnection& server, const proto::SessionSpec& spec,
                                 const std::string& device_class) {
  std::vector<double> bounds(spec.tasks.size(), 0.0);
  const auto devices = server.ListDevices();
  ir::Target target;
  std::string why;
  if (!devices.ok() || !ir::ParseTarget(spec.target, &target, &why)) return bounds;
  std::optional<proto::Probes> fastest;
  for (const proto::DeviceInfo& each : *devices) proto::TakeFaster(each, device_class, fastest);
  if (!fastest) return bounds;
  const measure::DeviceRates rates = proto::RatesOf(*fastest, target);
  for (size_t i = 0; i < bounds.size(); ++i) {
    const auto workload = ir::ParseWorkload(spec.tasks[i].workload);
    if (workload.ok()) bounds[i] = rates.BoundNs(ir::CostOf(*workload));
  }
  return bounds;
}

/// What was found of a model's branches, as a tuning on this machine says it.
std::string BranchesText(const std::optional<FarmJudgement>& branches) {
  if (!branches) return "";
  return (branches->verdict ? WayLine(*branches->verdict)
                            : "branches: not compared: " + branches->skipped) +
         "\n";
}
/// The sentence about the whole model, as people and programs read it.
std::string ModelText(const FarmJudgement& judgement) {
  return judgement.verdict ? VerdictLine(*judgement.verdict)
                           : "model: no verdict, " + judgement.skipped;
}

ordered_json BranchesJson(const std::optional<FarmJudgement>& branches) {
  if (!branches) return nullptr;
  if (branches->verdict) return WayJson(*branches->verdict);
  return {{"skipped", branches->skipped}};
}

class ServerTuning {
 public:
  explicit ServerTuning(CommandContext& context)
      : context_(context), clock_(*context.environment.clock) {}
  absl::Status Run();

 private:
  absl::StatusOr<proto::SessionSpec> MakeSpec();
  absl::Status Report(const ServerProgress& progress, const proto::SessionSpec& spec,
                      const FarmJudgements& judgements);
  void Print(const ServerProgress& progress, const proto::SessionSpec& spec,
             const FarmJudgements& judgements);
  void Announce(const proto::SessionSpec& spec, const TuneBudget& budget, const std::string& server,
                const ServerConnection::Started& started) const;
  void Journal(const std::string& line);

  CommandContext& context_;
  const MonotonicClock& clock_;
  std::ofstream journal_;
};

void ServerTuning::Journal(const std::string& line) {
  if (journal_.is_open()) journal_ << line + "\n" << std::flush;
}

absl::StatusOr<proto::SessionSpec> ServerTuning::MakeSpec() {
  const Arguments& arguments = context_.arguments;
  const SystemWallClock wall_clock;
  HONE_ASSIGN_OR_RETURN(const TuneBudget budget, ReadBudget(arguments, wall_clock));
  HONE_ASSIGN_OR_RETURN(const ir::AccuracyClass accuracy, ReadAccuracy(arguments));
  HONE_ASSIGN_OR_RETURN(const std::string target_text, ReadTarget(arguments));
  ir::Target target;
  std::string why;
  if (!ir::ParseTarget(target_text, &target, &why)) return absl::InvalidArgumentError(why);
  const std::string path = arguments.Text("MODEL");
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportModel(arguments, path));
  if (!context_.json()) context_.err << EmptyInputsNote(arguments, InputsOf(graph));
  HONE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  measure::BuilderClient builder(LocalBuilder(), clock_);
  auto tasks = TasksOfModel(std::move(graph), &target, builder, ReadBatch(arguments));
  if (!tasks.ok()) return CompileError(tasks.status());
  return proto::SessionSpec{.model = ModelName(path),
                            .model_hash = Sha256Hex(bytes),
                            .tasks = *std::move(tasks),
                            .target = target.text,
                            .device_class = arguments.TextOr("device-class", ""),
                            .seconds = budget.seconds,
                            .trials = budget.trials,
                            .until_unix_ms = budget.until_unix_ns / 1'000'000,
                            .seed = static_cast<uint64_t>(arguments.Integer("seed")),
                            .accuracy = accuracy,
                            .priority = static_cast<int>(arguments.Integer("priority")),
                            .project = arguments.TextOr("project", "")};
}

void ServerTuning::Print(const ServerProgress& progress, const proto::SessionSpec& spec,
                         const FarmJudgements& judgements) {
  const proto::SessionInfo& info = progress.info();
  const FarmJudgement& judgement = judgements.schedules;
  context_.out << ModelText(judgement) << "\n" << BranchesText(judgements.branches);
  for (const ServerProgress::Task& task : progress.tasks()) {
    if (!judgement.verdict) break;
    const std::vector<Hash128>& put_back = judgement.verdict->put_back;
    const Hash128 hash = Hash128::FromHex(task.workload).value_or(Hash128{});
    if (std::find(put_back.begin(), put_back.end(), hash) == put_back.end()) continue;
    context_.out << PutBackLine(task.row.name, task.workload);
  }
  context_.out << fmt::format(
      "{}\n{}\n{}; session {}\n",
      fmt::join(TaskTable(progress.Rows(), {.cells = LineCellsOf(STDOUT_FILENO)}), "\n"),
      progress.State(SystemWallClock()).Line(), info.reason, info.id.ToHex());
  ir::Target target;
  std::string why;
  if (info.state != db::SessionState::kFinished || !ir::ParseTarget(spec.target, &target, &why)) {
    return;
  }
  context_.out << fmt::format(
      "next: {}\n", CompileLine(context_.arguments, target,
                                fmt::format("{} --device-class {}", ServerWords(context_.arguments),
                                            ShellWord(info.device_class))));
}

absl::Status ServerTuning::Report(const ServerProgress& progress, const proto::SessionSpec& spec,
                                  const FarmJudgements& judgements) {
  const proto::SessionInfo& info = progress.info();
  const FarmJudgement& judgement = judgements.schedules;
  const std::string id = info.id.ToHex();
  if (context_.json()) {
    auto tasks = ordered_json::array();
    for (const ServerProgress::Task& task : progress.tasks()) {
      const bool bounded = task.row.bound_ns > 0 && task.row.best_ns > 0;
      const double share = bounded ? task.row.bound_ns / task.row.best_ns : 0;
      tasks.push_back({{"workload", task.workload},
                       {"name", task.row.name},
                       {"count", task.row.count},
                       {"default_us", Us(task.row.default_ns)},
                       {"best_us", Us(task.row.best_ns)},
                       {"roofline_share", bounded ? ordered_json(share) : ordered_json()},
                       {"trials", task.row.trials},
                       {"compared", task.compared},
                       {"replaced", task.replaced}});
    }
    ordered_json model = {{"verdict", nullptr}};
    if (judgement.verdict) model = VerdictJson(*judgement.verdict);
    model["skipped"] = judgement.verdict ? ordered_json() : ordered_json(judgement.skipped);
    model["branches"] = BranchesJson(judgements.branches);
    model["text"] = ModelText(judgement);
    const ordered_json object = {{"model", std::move(model)},
                                 {"server", context_.arguments.Text("server")},
                                 {"session", id},
                                 {"reason", info.reason},
                                 {"device_class", info.device_class},
                                 {"attempts", progress.answered()},
                                 {"default_us", Us(progress.TotalNs(false))},
                                 {"best_us", Us(progress.TotalNs(true))},
                                 {"tasks", std::move(tasks)}};
    context_.json_result = JsonText(object);
  } else {
    Print(progress, spec, judgements);
  }
  switch (info.state) {
    case db::SessionState::kFinished: return absl::OkStatus();
    case db::SessionState::kCancelled:
      return absl::CancelledError(fmt::format("session {}: {}", id, info.reason));
    default:
      return WithExitCode(absl::AbortedError(fmt::format("session {} failed: {}", id, info.reason)),
                          ExitCode::kServer);
  }
}

void ServerTuning::Announce(const proto::SessionSpec& spec, const TuneBudget& budget,
                            const std::string& server,
                            const ServerConnection::Started& started) const {
  context_.err << fmt::format("{} tasks for {} on server '{}', {}session {}\n", spec.tasks.size(),
                              spec.target, server, started.joined ? "joined " : "",
                              started.session.ToHex());
  // One that runs already has come some way; its table says how far.
  if (!started.joined) {
    context_.err << fmt::format("budget {}, {}\n", BudgetText(budget),
                                EndText(budget, {}, SystemWallClock()));
  }
  context_.err << TaskListText(ListedTasks(spec.tasks), LineCellsOf(STDERR_FILENO)) << std::flush;
}

absl::Status ServerTuning::Run() {
  const Arguments& arguments = context_.arguments;
  HONE_ASSIGN_OR_RETURN(const ServerAddress address, ReadServer(arguments));
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<ServerConnection> server,
                        ServerConnection::Open(address));
  if (arguments.Given("journal")) {
    journal_.open(arguments.Text("journal"), std::ios::app);
    if (!journal_) {
      return absl::PermissionDeniedError(
          fmt::format("cannot write the journal '{}'", arguments.Text("journal")));
    }
  }
  HONE_ASSIGN_OR_RETURN(const proto::SessionSpec spec, MakeSpec());
  HONE_ASSIGN_OR_RETURN(const ServerConnection::Started started, server->StartSession(spec));
  Journal("session " + started.session.ToHex());
  const std::string id = started.session.ToHex();
  const TuneBudget budget{.seconds = spec.seconds,
                          .trials = spec.trials,
                          .until_unix_ns = spec.until_unix_ms * 1'000'000};
  Announce(spec, budget, address.address, started);
  std::vector<ServerProgress::Task> tasks;
  for (const proto::TaskSpec& task : spec.tasks) {
    tasks.push_back({.row = {.name = task.name, .count = task.count},
                     .workload = HashBytes(task.workload).ToHex()});
  }
  ServerProgress progress(std::move(tasks), budget);
  if (!spec.device_class.empty()) {
    progress.SetBounds(ProbedBounds(*server, spec, spec.device_class));
  }
  const WhileDetachable detachable;
  const absl::Status watched = WatchLive(
      context_, address, *server, started.session, progress,
      [&](const proto::SessionEvent& event) {
        if (event.kind == proto::SessionEvent::Kind::kMeasured) {
          Journal(fmt::format("measured {} {} {} {}", event.sequence, event.attempt,
                              static_cast<int>(event.outcome), event.median_ns));
        }
      },
      [] { return g_detach.load(); });
  if (watched.code() == absl::StatusCode::kCancelled && g_detach.load()) {
    return absl::CancelledError(fmt::format(
        "detached; session {0} goes on with {1} candidates measured. To come back: the same "
        "command, or hone session watch {0} {2}; to end it: hone session cancel {0} {2}",
        id, progress.answered(), ServerWords(arguments)));
  }
  HONE_RETURN_IF_ERROR(watched);
  progress.SetBounds(ProbedBounds(*server, spec, progress.info().device_class));
  Journal("ended " + std::to_string(static_cast<int>(progress.info().state)));
  FarmJudgements judgements{.schedules = {.skipped = kNotAsked}};
  if (arguments.Flag("judge") && progress.info().state == db::SessionState::kFinished) {
    judgements =
        JudgeOnServer(context_, address, spec, progress.info(), [] { return g_detach.load(); });
  }
  return Report(progress, spec, judgements);
}

}  // namespace

absl::Status TuneOnServer(CommandContext& context) { return ServerTuning(context).Run(); }

}  // namespace hone::client
