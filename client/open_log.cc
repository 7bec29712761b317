#include "client/open_log.h"

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

absl::StatusOr<std::string> UserLogPath(const CommandContext& context) {
  if (context.arguments.Given("db")) return context.arguments.Text("db");
  if (!context.environment.log_path.empty()) return context.environment.log_path;
  if (!context.environment.data_folder.empty()) return context.environment.data_folder + "/tune.db";
  return WithExitCode(absl::InvalidArgumentError("no home folder; name the log with --db LOG"),
                      ExitCode::kUsage);
}

absl::StatusOr<std::unique_ptr<db::LogFile>> OpenUserLog(const std::string& path,
                                                         const db::OpenOptions& options) {
  auto log = db::OpenLog(path, options);
  if (!log.ok()) return LogError(log.status());
  return log;
}

}  // namespace hone::client
