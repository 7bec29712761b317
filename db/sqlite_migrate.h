#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

#include "db/migrations/migration.h"
#include "db/sqlite_connection.h"

namespace hone::db {

/// Makes an empty log at `path` by way of a temporary file, so that a log with half a schema never
/// exists. The caller holds the lock and knows that there is no log yet.
absl::Status CreateLog(const std::string& path, absl::Span<const Migration> migrations);

/// Makes an empty log in a file that is not there, at once: a crash leaves half of one.
absl::Status FillNewLog(const std::string& path, absl::Span<const Migration> migrations);

/// kFailedPrecondition for a schema newer than `newest`.
absl::Status CheckSchemaVersion(const std::string& path, int64_t version, int newest);

/// Brings an open log to the newest schema in one transaction, after a copy of it was written to
/// LOG.schemaN.bak (a log too: rename it over LOG to go back). Does nothing to a current one.
absl::Status MigrateLog(Connection& connection, absl::Span<const Migration> migrations);

enum class CopyFormat : uint8_t {
  kSnapshot,  ///< rollback format: readable without writing anything
  kLive,      ///< WAL, as a log is
};

/// Writes all of the log to `path` (replaced as a whole) and returns its SHA-256.
absl::StatusOr<std::string> CopyLog(Connection& connection, const std::string& path,
                                    CopyFormat format);

}  // namespace hone::db
