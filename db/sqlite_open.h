#pragma once

#include <memory>
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

}  // namespace hone::db
