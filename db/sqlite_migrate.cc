#include "db/sqlite_migrate.h"

#include <unistd.h>

#include <memory>
#include <utility>

#include "fmt/core.h"

#include "db/publish_file.h"
#include "db/sqlite_header.h"

namespace hone::db {
namespace {

// Runs the steps above `version`; the caller holds a transaction.
absl::Status RunSteps(Connection& connection, absl::Span<const Migration> migrations,
                      int64_t version) {
  // A step may write the text of the schema itself (004_predictions.cc).
  sqlite3_db_config(connection.handle(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
  absl::Status ran;
  for (const Migration& step : migrations) {
    if (step.to <= version || !ran.ok()) continue;
    ran = Annotate(connection.Execute(step.sql), fmt::format("migration to schema {}", step.to));
  }
  sqlite3_db_config(connection.handle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  HONE_RETURN_IF_ERROR(ran);
  return connection.Execute(fmt::format("PRAGMA user_version = {}", migrations.back().to));
}

// SQLite keeps the old format silently where it cannot do WAL: ask what it did.
absl::Status UseWal(Connection& connection) {
  HONE_ASSIGN_OR_RETURN(Query query, connection.Run("PRAGMA journal_mode = WAL"));
  HONE_ASSIGN_OR_RETURN(const bool row, query.Next());
  if (row && query.Text(0) == "wal") return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("cannot keep a log at '{}': this file system has no shared memory for SQLite's "
                  "WAL; put the log on a local disk (--db)",
                  connection.path()));
}

// A snapshot is facts alone: who runs a farm, for whom and how is nobody's business who reads it.
absl::Status ForgetFarm(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> copy,
                        Connection::Open(path, Connection::Access::kReadWrite));
  HONE_ASSIGN_OR_RETURN(
      const int64_t tables,
      copy->Number("SELECT count(*) FROM sqlite_schema WHERE name = 'farm_starts'"));
  if (tables == 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const int64_t starts, copy->Number("SELECT count(*) FROM farm_starts"));
  if (starts == 0) return absl::OkStatus();
  std::string drop = "PRAGMA foreign_keys = OFF; BEGIN;";
  for (const char* table : {"starts", "sessions", "leases", "suspects", "projects", "requests",
                            "devices", "revoked", "audit"}) {
    drop += fmt::format("DROP TABLE farm_{};", table);
  }
  return copy->Execute(drop + kMigration002 + "COMMIT; VACUUM");
}

}  // namespace

absl::Status FillNewLog(const std::string& temporary, absl::Span<const Migration> migrations) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection,
                        Connection::Open(temporary, Connection::Access::kCreate));
  HONE_ASSIGN_OR_RETURN(Transaction transaction,
                        Transaction::Begin(*connection, "BEGIN IMMEDIATE"));
  HONE_RETURN_IF_ERROR(
      connection->Execute(fmt::format("PRAGMA application_id = {}", kApplicationId)));
  HONE_RETURN_IF_ERROR(RunSteps(*connection, migrations, 0));
  HONE_RETURN_IF_ERROR(transaction.Commit());
  return UseWal(*connection);
}

absl::Status CreateLog(const std::string& path, absl::Span<const Migration> migrations) {
  // SQLite would replay it into the new file.
  if (FileSize(path + "-wal") > 0) {
    return absl::DataLossError(
        fmt::format("there is no log '{0}' but its newest rows are in '{0}-wal': put the log back "
                    "beside it, or "
                    "remove '{0}-wal' to begin a new one",
                    path));
  }
  const std::string temporary = path + ".tmp";
  RemoveDatabaseFiles(temporary);
  absl::Status made = FillNewLog(temporary, migrations);
  if (made.ok()) made = PublishFile(temporary, path);
  if (!made.ok()) RemoveDatabaseFiles(temporary);
  return made;
}

absl::Status CheckSchemaVersion(const std::string& path, int64_t version, int newest) {
  if (version <= newest) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("log '{}' was written by a newer Hone: it has schema {}, this program knows {}; "
                  "use the newer program or another log (--db)",
                  path, version, newest));
}

absl::Status MigrateLog(Connection& connection, absl::Span<const Migration> migrations) {
  HONE_ASSIGN_OR_RETURN(const int64_t version, connection.Number("PRAGMA user_version"));
  if (version == migrations.back().to) return absl::OkStatus();
  const std::string backup = fmt::format("{}.schema{}.bak", connection.path(), version);
  HONE_RETURN_IF_ERROR(
      Annotate(CopyLog(connection, backup, CopyFormat::kLive).status(), "backup before migration"));
  {
    HONE_ASSIGN_OR_RETURN(Transaction transaction,
                          Transaction::Begin(connection, "BEGIN IMMEDIATE"));
    HONE_RETURN_IF_ERROR(RunSteps(connection, migrations, version));
    HONE_RETURN_IF_ERROR(transaction.Commit());
  }
  // So that the header of the main file tells the version to those who only look at it.
  return connection.Do("PRAGMA wal_checkpoint(TRUNCATE)");
}

absl::StatusOr<std::string> CopyLog(Connection& connection, const std::string& path,
                                    CopyFormat format) {
  const std::string temporary = fmt::format("{}.tmp.{}", path, ::getpid());
  RemoveDatabaseFiles(temporary);
  const auto write = [&]() -> absl::StatusOr<std::string> {
    HONE_RETURN_IF_ERROR(connection.Do("VACUUM INTO ?", temporary));
    if (format == CopyFormat::kSnapshot) HONE_RETURN_IF_ERROR(ForgetFarm(temporary));
    if (format == CopyFormat::kLive) {
      HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> copy,
                            Connection::Open(temporary, Connection::Access::kReadWrite));
      HONE_RETURN_IF_ERROR(UseWal(*copy));
    }
    std::string sha256;
    {
      HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> copy,
                            Connection::Open(temporary, Connection::Access::kImmutable));
      HONE_ASSIGN_OR_RETURN(sha256, FileSha256(*copy));
    }
    HONE_RETURN_IF_ERROR(PublishFile(temporary, path));
    return sha256;
  };
  absl::StatusOr<std::string> sha256 = write();
  if (!sha256.ok()) RemoveDatabaseFiles(temporary);
  return sha256;
}

}  // namespace hone::db
