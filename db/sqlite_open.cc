#include "db/sqlite_open.h"

#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "fmt/core.h"

#include "db/publish_file.h"
#include "db/sqlite_header.h"
#include "db/sqlite_migrate.h"

namespace hone::db {
namespace {

using LogPointer = std::unique_ptr<SqliteLogFile>;

// One name for one log, whatever links lead to it: all must meet at one lock.
std::string RealPath(const std::string& path) {
  std::error_code error;
  std::filesystem::path real = path;
  // weakly_canonical does not follow a link to a file that is yet to be made.
  constexpr int kMaxLinks = 40;
  for (int i = 0; i < kMaxLinks && std::filesystem::is_symlink(real, error); ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(real, error);
    real = real.parent_path() / target;
  }
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(real, error);
  return error ? path : canonical.string();
}

// Shared memory and locks of these do not reach from one machine to another.
bool IsNetworkFolder(const std::string& folder) {
  struct statfs info {};
  if (::statfs(folder.c_str(), &info) != 0) return false;
  constexpr uint32_t kNfs = 0x6969;
  constexpr uint32_t kSmb = 0x517b;
  constexpr uint32_t kCifs = 0xff534d42;
  constexpr uint32_t kSmb2 = 0xfe534d42;
  const auto type = static_cast<uint32_t>(info.f_type);
  return type == kNfs || type == kSmb || type == kCifs || type == kSmb2;
}

absl::Status Damaged(const std::string& path, const std::string& why) {
  return absl::DataLossError(
      fmt::format("log '{}' is damaged ({}); it was left as it is. Put a snapshot or backup in its "
                  "place, or save what is sound: hone db merge NEW_LOG {}",
                  path, why, path));
}

absl::Status QuickCheck(Connection& connection) {
  HONE_ASSIGN_OR_RETURN(Query query, connection.Run("PRAGMA quick_check(1)"));
  const absl::StatusOr<bool> row = query.Next();
  if (!row.ok()) {
    if (row.status().code() != absl::StatusCode::kDataLoss) return row.status();
    return Damaged(connection.path(), sqlite3_errmsg(connection.handle()));
  }
  if (*row && query.Text(0) == "ok") return absl::OkStatus();
  return Damaged(connection.path(), *row ? query.Text(0) : "no answer");
}

// As long as a log may prove damaged, closing it must not fold its WAL into it.
void CheckpointOnClose(Connection& connection, bool enabled) {
  sqlite3_db_config(connection.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, enabled ? 0 : 1,
                    nullptr);
}

// Lets SQLite read what there is of a file that is shorter than its header says.
absl::Status TolerateDamage(Connection& connection) {
  sqlite3_db_config(connection.handle(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
  return connection.Execute("PRAGMA writable_schema = ON");
}

absl::StatusOr<LogPointer> OpenForWriting(const std::string& path,
                                          absl::Span<const Migration> migrations) {
  if (IsNetworkFolder(FolderOf(path))) {
    return absl::FailedPreconditionError(
        fmt::format("log '{}' lies on a network file system, where SQLite can lose it; put it on a "
                    "local disk (--db) and share snapshots (hone db snapshot)",
                    path));
  }
  // A folder, pipe or device is refused before anything is made: a new log would be renamed onto
  // it.
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::status(path, ignored).type();
  const bool absent = type == std::filesystem::file_type::not_found;
  const bool regular = type == std::filesystem::file_type::regular;
  if (!absent && !regular) HONE_RETURN_IF_ERROR(ReadLogHeader(path).status());
  if (regular && ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("cannot write log '{}': {}; name a log of yours", path, std::strerror(errno)));
  }
  HONE_ASSIGN_OR_RETURN(LogLock lock, LogLock::Take(path));
  if ((absent || regular) && FileSize(path) == 0) {
    HONE_RETURN_IF_ERROR(CreateLog(path, migrations));
  }
  HONE_ASSIGN_OR_RETURN(const LogHeader header, ReadLogHeader(path));
  HONE_RETURN_IF_ERROR(CheckSchemaVersion(path, header.schema_version, migrations.back().to));
  if (!header.live) {
    return absl::FailedPreconditionError(
        fmt::format("'{}' is a snapshot, which never changes; to go on from it: hone db merge "
                    "NEW_LOG {}",
                    path, path));
  }
  const bool has_wal = FileSize(path + "-wal") > 0;
  if (!has_wal) {
    HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Connection> looking,
                          Connection::Open(path, Connection::Access::kImmutable));
    HONE_RETURN_IF_ERROR(QuickCheck(*looking));
  }
  return OpenWriter(path, std::move(lock), has_wal, migrations);
}

absl::StatusOr<LogPointer> OpenSnapshot(const std::string& path, const OpenOptions& options) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                        Connection::Open(path, Connection::Access::kImmutable));
  if (options.skip_damaged) HONE_RETURN_IF_ERROR(TolerateDamage(*connection));
  // Pages are read where they lie in the system's cache; half of a look-up's time was their copies.
  // For what never changes alone: a page of a mapped file that cannot be read is a signal.
  HONE_RETURN_IF_ERROR(connection->Execute("PRAGMA mmap_size = 2147418112"));
  if (!options.sha256.empty()) {
    HONE_ASSIGN_OR_RETURN(const std::string found, FileSha256(*connection));
    if (found != options.sha256) {
      return absl::InvalidArgumentError(
          fmt::format("snapshot '{}' is not the pinned one: its SHA-256 is {}, {} was asked for; "
                      "restore that file or pin this one",
                      path, found, options.sha256));
    }
  }
  return std::make_unique<SqliteLogFile>(options, std::nullopt, std::move(connection));
}

absl::StatusOr<LogPointer> OpenForReading(const std::string& path, const OpenOptions& options,
                                          int newest) {
  const std::string folder = FolderOf(path);
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("log '{0}' is no snapshot: it may be written at any time, and reading it so "
                    "needs a folder that can be written, which '{1}' is not for this user; read a "
                    "copy instead, made by somebody who can "
                    "write there: hone db snapshot {0} --output FILE",
                    path, folder));
  }
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                        Connection::Open(path, Connection::Access::kReadOnly));
  if (options.skip_damaged) HONE_RETURN_IF_ERROR(TolerateDamage(*connection));
  HONE_ASSIGN_OR_RETURN(const int64_t version, connection->Number("PRAGMA user_version"));
  HONE_RETURN_IF_ERROR(CheckSchemaVersion(path, version, newest));
  return std::make_unique<SqliteLogFile>(options, std::nullopt, std::move(connection));
}

}  // namespace

absl::StatusOr<LogPointer> OpenWriter(const std::string& path, std::optional<LogLock> lock,
                                      bool has_wal, absl::Span<const Migration> migrations) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<Connection> connection,
                        Connection::Open(path, Connection::Access::kReadWrite));
  CheckpointOnClose(*connection, false);
  if (has_wal) HONE_RETURN_IF_ERROR(QuickCheck(*connection));
  HONE_ASSIGN_OR_RETURN(const int64_t version, connection->Number("PRAGMA user_version"));
  HONE_RETURN_IF_ERROR(CheckSchemaVersion(path, version, migrations.back().to));
  CheckpointOnClose(*connection, true);
  HONE_RETURN_IF_ERROR(connection->Execute(
      "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 16777216;"
      "PRAGMA cell_size_check = ON; PRAGMA cache_size = -16384"));
  HONE_RETURN_IF_ERROR(MigrateLog(*connection, migrations));
  connection->WatchOverwriting();
  return std::make_unique<SqliteLogFile>(OpenOptions{.mode = OpenMode::kWrite}, std::move(lock),
                                         std::move(connection));
}

absl::StatusOr<LogPointer> OpenSqliteLog(const std::string& path, const OpenOptions& options,
                                         absl::Span<const Migration> migrations) {
  const std::string real = RealPath(path);
  const int newest = migrations.back().to;
  if (options.mode == OpenMode::kWrite) {
    HONE_ASSIGN_OR_RETURN(LogPointer log, OpenForWriting(real, migrations));
    if (options.checkpoints_apart) HONE_RETURN_IF_ERROR(log->CheckpointApart());
    return log;
  }
  HONE_ASSIGN_OR_RETURN(const LogHeader header, ReadLogHeader(real));
  HONE_RETURN_IF_ERROR(CheckSchemaVersion(real, header.schema_version, newest));
  if (!header.live) return OpenSnapshot(real, options);
  if (options.mode == OpenMode::kSnapshot || !options.sha256.empty()) {
    return absl::FailedPreconditionError(fmt::format(
        "'{0}' is a live log, which changes and cannot be pinned; make a snapshot of it: "
        "hone db snapshot {0} --output FILE",
        real));
  }
  return OpenForReading(real, options, newest);
}

absl::StatusOr<std::unique_ptr<LogFile>> OpenLog(const std::string& path,
                                                 const OpenOptions& options) {
  return OpenSqliteLog(path, options);
}

SqliteLogFile::~SqliteLogFile() = default;

absl::Status SqliteLogFile::CheckpointApart() {
  HONE_ASSIGN_OR_RETURN(checkpointer_, Checkpointer::Start(*connection_));
  return absl::OkStatus();
}

}  // namespace hone::db
