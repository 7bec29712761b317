#include "client/open_log.h"

#include "fmt/format.h"

#include "client/exit_code.h"

namespace hone::client {

absl::Status LogError(const absl::Status& status) {
  if (HasExitCode(status)) return status;  // a server's: it answers look-ups as a log does
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kFailedPrecondition: return WithExitCode(status, ExitCode::kLog);
    default: return status;
  }
}

absl::StatusOr<std::string> UserLogPath(const Arguments& arguments,
                                        const Environment& environment) {
  const bool has_option = arguments.command()->FindOption("db") != nullptr;
  if (has_option && arguments.GivenOnLine("db")) return arguments.Text("db");
  if (!environment.log_path.empty()) return environment.log_path;
  if (has_option && arguments.Given("db")) return arguments.Text("db");
  if (!environment.data_folder.empty()) return environment.data_folder + "/tune.db";
  return WithExitCode(absl::InvalidArgumentError(fmt::format(
                          "there is no home folder that would have a log: name one with {}",
                          has_option ? "--db LOG" : "LOG or HONE_DB")),
                      ExitCode::kUsage);
}

LogName LogNameOf(const Arguments& arguments) {
  return arguments.GivenOnLine("db") ? LogName::kGiven : LogName::kDefault;
}

absl::StatusOr<std::unique_ptr<db::LogFile>> OpenUserLog(const std::string& path,
                                                         const db::OpenOptions& options,
                                                         LogName name) {
  auto log = db::OpenLog(path, options);
  if (log.ok()) return log;
  if (name == LogName::kDefault && absl::IsInvalidArgument(log.status())) {
    return WithExitCode(log.status(), ExitCode::kLog);
  }
  return LogError(log.status());
}

}  // namespace hone::client
