#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "fmt/format.h"

#include "base/core/cpu.h"
#include "base/core/random_id.h"
#include "base/credential_check.h"
#include "base/credentials.h"
#include "base/daemon_main.h"
#include "base/farm_address.h"
#include "base/helper_program.h"
#include "base/kill_point.h"
#include "base/log.h"
#include "base/service_notice.h"
#include "base/status.h"
#include "base/versions.h"
#include "ir/kind_facts.h"
#include "ir/target.h"
#include "measure/device.h"
#include "measure/helper_check.h"
#include "measure/sandbox.h"
#include "proto/field_check.h"
#include "proto/quiet_grpc.h"
#include "worker/worker.h"

namespace {

using hone::DaemonOption;

constexpr char kHost[] = "cpu:0";
constexpr char kDefaultConfig[] = "/etc/hone/worker.toml";
constexpr std::array kOptions = {
    DaemonOption("connect", "", "ADDRESS", "honed's address, HOST or HOST:PORT (7421)", false,
                 false, "server|honed|address|coordinator|host"),
    DaemonOption("tls", "/etc/hone/tls", "FOLDER", "ca.pem, cert.pem and key.pem of this worker",
                 false, false, "credentials|certs|certificates|cert|key"),
    DaemonOption("insecure-loopback", "false", "", "no encryption; only to a loopback address"),
    DaemonOption("name", "worker", "NAME",
                 "name of this worker where no certificate has it (--insecure-loopback)"),
    DaemonOption("device", kHost, "DEVICE",
                 "the device to measure on, KIND:N; workers with the same one take turns"),
    DaemonOption("role", "", "ROLE",
                 "both; build for others; or run what others build (default: both, and run where "
                 "hone-builder is not installed)"),
    DaemonOption("labels", "", "K=V", "labels that `hone device list` shows", true),
    DaemonOption("builders", "", "N", "processes that build (default: the usable cores)", false,
                 false, "jobs|threads|processes"),
    DaemonOption("ahead", "12", "N", "leases held to keep builders and device busy"),
    DaemonOption("lock-folder", "/run/lock", "FOLDER", "where device locks are"),
    DaemonOption("journal", "", "FILE", "append every result and acknowledgement to this file"),
    DaemonOption("silent-seconds", "30", "N", "give up a connection on which honed says nothing"),
    DaemonOption("test-kill", "", "LABEL:N", "", true),
    DaemonOption("end-with", "", "PID", ""),  // honed --dev starts it so
    DaemonOption("unsafe-no-sandbox", "false", "",
                 "also run candidates where no sandbox can be set up"),
    DaemonOption("log-level", "info", "LEVEL", "debug, info, warning or error", false, false,
                 "verbose|debug|quiet"),
    DaemonOption("config", "", "FILE", "read options from here instead of /etc/hone/worker.toml"),
    DaemonOption("check-config", "", "",
                 "check the configuration, say what is wrong with it, and end"),
    DaemonOption("help", "", "", "print this"),
    DaemonOption("man", "", "", "print the manual page: --man | man -l -"),
    DaemonOption("version", "", "", "print the version"),
};
constexpr std::array<std::string_view, 11> kKillLabels = {
    "worker.granted", "worker.started",  "worker.ran",        "worker.sending",
    "worker.sent",    "worker.answered", "builder.compiling", "builder.compiled",
    "runner.loading", "runner.ran",      "runner.timing"};
constexpr char kUsage[] = "hone-worker --connect ADDRESS [--tls FOLDER] [OPTION…]";

std::atomic<bool> g_ending{false};
void OnSignal(int) { g_ending.store(true); }

absl::StatusOr<int> Whole(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 1 || value > 4096) {
    return absl::InvalidArgumentError(
        fmt::format("--{} takes a whole number from 1 to 4096, not '{}'", name, text));
  }
  return static_cast<int>(value);
}

absl::StatusOr<hone::proto::WorkerRole> RoleOf(const std::string& text) {
  if (text.empty()) {
    if (hone::FindHelperProgram("hone-builder").ok()) return hone::proto::WorkerRole::kBoth;
    hone::LogInfo("hone-builder is not installed: this worker runs what others build");
    return hone::proto::WorkerRole::kRun;
  }
  if (text == "both") return hone::proto::WorkerRole::kBoth;
  if (text == "build") return hone::proto::WorkerRole::kBuild;
  if (text == "run") return hone::proto::WorkerRole::kRun;
  return absl::InvalidArgumentError(fmt::format("--role is both, build or run, not '{}'", text));
}

/// Whether candidates can be built and run here, and locked up: known before any lease.
absl::Status CheckMachine(const hone::worker::WorkerOptions& worker,
                          const hone::MonotonicClock& clock) {
  using hone::proto::WorkerRole;
  absl::Status status;
  if (worker.hello.role != WorkerRole::kRun) {
    status = hone::measure::CheckBuilder(worker.measurer.builder, clock);
  }
  if (status.ok() && worker.hello.role != WorkerRole::kBuild) {
    status = hone::measure::CheckRunner(worker.measurer.runner, clock);
  }
  if (status.ok() || worker.measurer.runner.unsafe_no_sandbox) return status;
  return hone::Annotate(status,
                        "this worker takes no work (if only the sandbox is missing and every "
                        "client and worker of the farm is trusted: --unsafe-no-sandbox)");
}

absl::StatusOr<std::map<std::string, std::string>> LabelsOf(const std::vector<std::string>& list) {
  std::map<std::string, std::string> labels;
  for (const std::string& label : list) {
    const std::string field = fmt::format("--labels {}", hone::proto::Cut(label, 40));
    const size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(fmt::format("{}: expected K=V", field));
    }
    HONE_ASSIGN_OR_RETURN(std::string name, hone::proto::Name(label.substr(0, equals), field));
    HONE_ASSIGN_OR_RETURN(
        std::string value,
        hone::proto::Printing(label.substr(equals + 1), 0, hone::proto::kMaxNameBytes, field));
    if (!labels.emplace(std::move(name), std::move(value)).second) {
      return absl::InvalidArgumentError(fmt::format("{}: this label is given twice", field));
    }
  }
  HONE_RETURN_IF_ERROR(hone::proto::AtMost(labels.size(), hone::proto::kMaxLabels, "--labels"));
  return labels;
}

/// What this worker says of itself, and the device that it measures on.
absl::Status ReadHello(const hone::ProgramOptions& options, hone::worker::WorkerOptions* worker) {
  hone::proto::Hello& hello = worker->hello;
  hello.protocol = hone::kProtocolVersion;
  hello.builder_version = fmt::format("{}+{}", hone::kBuilderVersion, HONE_LLVM_MAJOR_MINOR);
  hello.program_version = hone::kProgramVersion;
  hello.instance = hone::RandomId();
  HONE_ASSIGN_OR_RETURN(hello.role, RoleOf(options.Text("role")));
  const bool builds_only = hello.role == hone::proto::WorkerRole::kBuild;
  std::string name = options.Text("device");
  const auto host = hone::measure::DescribeDevice(builds_only ? kHost : name);
  if (!host.ok()) return hone::Annotate(host.status(), fmt::format("--device {}", name));
  // Nothing of it is measured on: a worker beside it may have that.
  if (builds_only && name == kHost) name = "build:0";
  hello.measurement_policy = hone::ir::VersionsOf(host->target).measurement_policy;
  hello.device = {.name = std::move(name),
                  .device_class = host->device_class,
                  .fingerprint = host->fingerprint,
                  .target = host->target,
                  .cores = host->cores,
                  .memory_bytes = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGE_SIZE),
                  .driver = host->driver};
  if (hello.role == hone::proto::WorkerRole::kRun) hello.builder_version.clear();
  hello.sandboxed = !options.Flag("unsafe-no-sandbox");
  hello.sandbox_gap = hone::measure::CanHideFiles().message();
  HONE_RETURN_IF_ERROR(hone::proto::Name(hello.device.name, "--device").status());
  HONE_ASSIGN_OR_RETURN(hello.labels, LabelsOf(options.List("labels")));
  hone::ir::Target best;
  std::string why;
  worker->measurer.alternate =
      !hone::ir::ParseTarget(host->target, &best, &why) || hone::measure::HostCoresOf(best) > 0;
  worker->lock = host->lock;
  if (!builds_only) worker->measurer.runner.device = hello.device.name;
  return absl::OkStatus();
}

/// Tests: lets this program and its children die at labelled steps.
absl::Status PlanDeaths(const hone::ProgramOptions& options,
                        hone::measure::LocalMeasurerOptions& measurer) {
  const std::vector<std::string> points = options.List("test-kill");
  if (points.empty()) return absl::OkStatus();
  HONE_RETURN_IF_ERROR(hone::SetKillPoints(points, kKillLabels));
  const auto hook_for = [](std::string_view child) {
    return [child](const hone::measure::MeasureInput& input) -> std::string {
      if (input.kind != hone::measure::MeasureKind::kScreen) return "";
      for (const std::string_view label : kKillLabels) {
        if (label.rfind(child, 0) != 0 || !hone::KillChildAt(label)) continue;
        return "kill-" + std::string(label.substr(child.size()));
      }
      return "";
    };
  };
  measurer.build_hook = hook_for("builder.");
  measurer.run_hook = hook_for("runner.");
  measurer.builder.test_hooks = measurer.runner.test_hooks = true;
  return absl::OkStatus();
}

/// Ends this program as SIGTERM does once its parent, which is to be `pid`, has ended in whatever
/// way.
void EndWithParent(const std::string& pid) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
  // It may have ended before.
  if (std::to_string(::getppid()) != pid) g_ending.store(true);
}

absl::StatusOr<hone::Credentials> CredentialsOf(const hone::ProgramOptions& options) {
  hone::CredentialUse use{.roles = {hone::CallerRole::kMeasure}};
  // Whether the certificate is over is honed's to say, whose clock counts; a check asks nobody.
  if (options.Flag("check-config")) {
    use.at_unix_s = hone::SystemWallClock().UnixNs() / 1'000'000'000;
  }
  const std::string& folder = options.Text("tls");
  auto credentials = hone::ReadConfiguredCredentials(folder, use);
  if (!credentials.ok() && ::access(folder.c_str(), F_OK) != 0) {
    return absl::InvalidArgumentError(
        fmt::format("--tls {0}: there is no such folder; on honed's machine `honed issue measure "
                    "NAME --out NAME` makes credentials to put there",
                    folder));
  }
  return credentials;
}

absl::Status Run(const hone::ProgramOptions& options) {
  // `--unsafe-no-sandbox false` would be the flag, and a word: the contrary of what it says.
  if (!options.words().empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is no option; a flag takes its value after '=' (--unsafe-no-sandbox=false)",
        options.words().front()));
  }
  hone::worker::WorkerOptions worker;
  if (const std::string parent = options.Text("end-with"); !parent.empty()) {
    EndWithParent(parent);
    worker.drain_ms = 1000;  // nobody may be left to take its results
  }
  HONE_RETURN_IF_ERROR(ReadHello(options, &worker));
  if (options.Text("connect").empty()) {
    return absl::InvalidArgumentError(
        "--connect ADDRESS says where honed is (to try Hone out without one: honed --dev)");
  }
  const auto dialled = hone::DialAddress(options.Text("connect"));
  if (!dialled.ok()) return hone::Annotate(dialled.status(), "--connect");
  worker.server = *dialled;
  worker.plaintext = options.Flag("insecure-loopback");
  worker.name = options.Text("name");
  if (worker.plaintext && !hone::IsLoopbackAddress(worker.server)) {
    return absl::InvalidArgumentError(fmt::format(
        "--insecure-loopback is only for a honed on this machine, and '{}' is not there; "
        "drop it and give --tls FOLDER",
        worker.server));
  }
  HONE_ASSIGN_OR_RETURN(worker.desk.ahead, Whole("ahead", options.Text("ahead")));
  const std::string builders = options.Text("builders");
  worker.measurer.builder.processes = hone::UsableCores();
  if (!builders.empty()) {
    HONE_ASSIGN_OR_RETURN(worker.measurer.builder.processes, Whole("builders", builders));
  }
  worker.measurer.builder.job_timeout_ns = 20'000'000'000;
  worker.measurer.built_ahead = worker.desk.ahead;
  worker.measurer.device_class = worker.hello.device.device_class;
  worker.lock_folder = options.Text("lock-folder");
  worker.journal = options.Text("journal");
  HONE_ASSIGN_OR_RETURN(const int silent_s,
                        Whole("silent-seconds", options.Text("silent-seconds")));
  constexpr int kLeastSilence = 3;  // honed ends connections that ask more than once a second
  if (silent_s < kLeastSilence) {
    return absl::InvalidArgumentError("--silent-seconds takes a whole number from 3");
  }
  worker.silent_ms = int64_t{1000} * silent_s;
  HONE_RETURN_IF_ERROR(PlanDeaths(options, worker.measurer));
  worker.seed = worker.hello.instance.low;
  worker.measurer.builder.unsafe_no_sandbox = !worker.hello.sandboxed;
  worker.measurer.runner.unsafe_no_sandbox = !worker.hello.sandboxed;
  if (worker.hello.role == hone::proto::WorkerRole::kBuild) {
    // Enough that no builder waits for its next lease.
    worker.desk.ahead = std::max(worker.desk.ahead, 2 * worker.measurer.builder.processes);
  }
  if (!worker.plaintext) {
    HONE_ASSIGN_OR_RETURN(worker.credentials, CredentialsOf(options));
    HONE_ASSIGN_OR_RETURN(const hone::Identity holder, hone::HolderOf(worker.credentials));
    worker.name = holder.name;
  }
  if (options.Flag("check-config")) return absl::OkStatus();
  const hone::SystemMonotonicClock clock;
  HONE_RETURN_IF_ERROR(CheckMachine(worker, clock));
  // It works from here on; whether honed answers is no matter of its own start.
  const char* const socket = std::getenv("NOTIFY_SOCKET");
  const absl::Status told = hone::NotifyService(socket == nullptr ? "" : socket, "READY=1");
  if (!told.ok()) hone::LogWarning("{}", hone::StatusMessage(told));
  return hone::worker::RunWorker(std::move(worker), clock, g_ending);
}

}  // namespace

int main(int argc, char** argv) {
  // Debian builds Abseil with deadlock detection on; it costs four times the lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::signal(SIGTERM, OnSignal);
  std::signal(SIGINT, OnSignal);
  hone::proto::KeepGrpcQuiet();
  return hone::RunDaemon({.name = "hone-worker",
                          .summary = "builds and measures for a tuning farm",
                          .usage = kUsage,
                          .options = kOptions,
                          .default_config = kDefaultConfig,
                          .run = Run},
                         argc, argv);
}
