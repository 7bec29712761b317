#pragma once

#include <cstdint>
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

/// Whether the command's line names its log.
enum class LogName : uint8_t { kGiven, kDefault };
/// For a command whose only name of a log is --db.
LogName LogNameOf(const Arguments& arguments);

/// db::OpenLog with the errors of LogError. What is no log at all is bad input where it was given
/// as one; in the place of the default log it is a log that cannot be read (kLog).
absl::StatusOr<std::unique_ptr<db::LogFile>> OpenUserLog(const std::string& path,
                                                         const db::OpenOptions& options,
                                                         LogName name = LogName::kGiven);

}  // namespace hone::client
