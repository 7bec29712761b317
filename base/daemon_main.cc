#include "base/daemon_main.h"

#include <csignal>
#include <cstdio>
#include <optional>

#include "absl/strings/cord.h"
#include "fmt/core.h"

#include "base/status.h"
#include "base/versions.h"

namespace hone {
namespace {

constexpr char kOfServer[] = "hone/of-server";
constexpr int kExitUsage = 2, kExitServer = 6, kExitFault = 1;

absl::StatusOr<LogLevel> LevelOf(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "info") return LogLevel::kInfo;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return absl::InvalidArgumentError(
      fmt::format("--log-level is debug, info, warning or error, not '{}'", name));
}

absl::Status ReadAndRun(const DaemonProgram& program, int argc, char** argv) {
  HONE_ASSIGN_OR_RETURN(
      const ProgramOptions options,
      ProgramOptions::Parse({argv + 1, argv + argc}, program.options, program.default_config));
  if (options.Flag("help")) {
    fmt::print("{}", ProgramHelp(program.usage, program.options));
    return absl::OkStatus();
  }
  if (options.Flag("man")) {
    fmt::print("{}", DaemonManPage(program.name, program.summary, program.usage, program.options));
    return absl::OkStatus();
  }
  if (options.Flag("version")) {
    fmt::print("{} {}\n", program.name, kProgramVersion);
    return absl::OkStatus();
  }
  LogOptions log = program.log;
  HONE_ASSIGN_OR_RETURN(log.level, LevelOf(options.Text("log-level")));
  const LogSession session(log);
  return program.run(options);
}

}  // namespace

absl::Status AsServerError(absl::Status status) {
  if (!status.ok()) status.SetPayload(kOfServer, absl::Cord());
  return status;
}

int RunDaemon(const DaemonProgram& program, int argc, char** argv) {
  // A peer that goes away is an error of that call, not our death.
  std::signal(SIGPIPE, SIG_IGN);
  const absl::Status status = ReadAndRun(program, argc, argv);
  if (status.ok()) return 0;
  fmt::print(stderr, "{}: error: {}\n", program.name, StatusMessage(status));
  if (status.GetPayload(kOfServer).has_value()) return kExitServer;
  return status.code() == absl::StatusCode::kInvalidArgument ? kExitUsage : kExitFault;
}

}  // namespace hone
