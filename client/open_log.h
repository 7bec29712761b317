#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "client/arguments.h"
#include "client/command.h"
#include "db/log_file.h"

namespace hone::client {

/// An error of a log with its exit code: busy, damaged, newer or not readable from here (kLog);
/// others keep theirs.
absl::Status LogError(const absl::Status& status);

/// The log of a command that may go without --db: --db of its line, else $HONE_DB, else `db` of the
/// config file, else the user's own. A usage error where there is no home folder either.
absl::StatusOr<std::string> UserLogPath(const Arguments& arguments, const Environment& environment);

/// db::OpenLog with the errors of LogError.
absl::StatusOr<std::unique_ptr<db::LogFile>> OpenUserLog(const std::string& path,
                                                         const db::OpenOptions& options);

}  // namespace hone::client
