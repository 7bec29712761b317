#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "db/migrations/migration.h"
#include "db/sqlite_log_file.h"

namespace hone::db {

/// OpenLog for a schema of one's own; tests use it to see migrations happen.
absl::StatusOr<std::unique_ptr<SqliteLogFile>> OpenSqliteLog(
    const std::string& path, const OpenOptions& options,
    absl::Span<const Migration> migrations = kMigrations);

/// What OpenLog does for a writer once it has the lock of a file that is there. Tests whose disk is
/// not this machine's call it without a lock.
absl::StatusOr<std::unique_ptr<SqliteLogFile>> OpenWriter(
    const std::string& path, std::optional<LogLock> lock, bool has_wal,
    absl::Span<const Migration> migrations = kMigrations);

}  // namespace hone::db
