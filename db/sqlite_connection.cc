#include "db/sqlite_connection.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <system_error>

#include "fmt/core.h"

#include "db/sqlite_stamp.h"

namespace hone::db {
namespace {

// How long a reader waits while another process recovers or closes the log.
constexpr int kBusyTimeoutMs = 10'000;

absl::StatusCode CodeOf(int code, int system_error) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL: return absl::StatusCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return absl::StatusCode::kDataLoss;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG: return absl::StatusCode::kResourceExhausted;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH: return absl::StatusCode::kPermissionDenied;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH: return absl::StatusCode::kInvalidArgument;
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
      if (system_error == EFBIG) return absl::StatusCode::kResourceExhausted;
      return system_error == 0 ? absl::StatusCode::kUnknown : ErrnoStatus(system_error, "").code();
    default: return absl::StatusCode::kInternal;
  }
}

std::string_view RemedyOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kDataLoss:
      return "; the log is damaged: `hone db verify` lists what, `hone db merge NEW_LOG LOG` saves "
             "the rest";
    case absl::StatusCode::kResourceExhausted:
      return "; free some space, everything acknowledged so far is kept";
    case absl::StatusCode::kUnavailable: return "; another process has it, try again";
    default: return "";
  }
}

// `system_error` is errno as the failed call left it; SQLite itself keeps it only sometimes.
absl::Status StatusOf(sqlite3* handle, int code, int system_error, std::string_view doing,
                      std::string_view path) {
  if (handle != nullptr && sqlite3_system_errno(handle) != 0) {
    system_error = sqlite3_system_errno(handle);
  }
  const absl::StatusCode status = CodeOf(code, system_error);
  std::string why = handle != nullptr && sqlite3_errcode(handle) != SQLITE_OK
                        ? sqlite3_errmsg(handle)
                        : sqlite3_errstr(code);
  const int kind = code & 0xff;
  if (system_error != 0 && (kind == SQLITE_CANTOPEN || kind == SQLITE_IOERR)) {
    why += fmt::format(" ({})", std::generic_category().message(system_error));
  }
  return absl::Status(status,
                      fmt::format("cannot {} log '{}': {}{}", doing, path, why, RemedyOf(status)));
}

}  // namespace

std::array<unsigned char, 16> HashToBytes(const Hash128& hash) {
  std::array<unsigned char, 16> bytes{};
  for (size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<unsigned char>(hash.high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<unsigned char>(hash.low >> (56 - 8 * i));
  }
  return bytes;
}

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

absl::StatusOr<bool> Query::Next() {
  errno = 0;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const int system_error = errno;
  sqlite3* handle = sqlite3_db_handle(statement_);
  return StatusOf(handle, code, system_error, "use", sqlite3_db_filename(handle, "main"));
}

absl::Status Query::Finish() {
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, Next());
    if (!row) return absl::OkStatus();
  }
}

std::string_view Query::Bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

Hash128 Query::Hash(int column) const {
  const std::string_view bytes = Bytes(column);
  if (bytes.size() != 16) return {};
  Hash128 hash;
  for (size_t i = 0; i < 8; ++i) {
    hash.high = hash.high << 8 | static_cast<unsigned char>(bytes[i]);
    hash.low = hash.low << 8 | static_cast<unsigned char>(bytes[8 + i]);
  }
  return hash;
}

int Query::Bind(int index, std::string_view text) {
  // A null pointer would bind NULL.
  const char* data = text.empty() ? "" : text.data();
  return sqlite3_bind_text64(statement_, index, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

int Query::Bind(int index, BlobBytes blob) {
  const char* data = blob.bytes.empty() ? "" : blob.bytes.data();
  return sqlite3_bind_blob64(statement_, index, data, blob.bytes.size(), SQLITE_TRANSIENT);
}

int Query::Bind(int index, const Hash128& hash) {
  const std::array<unsigned char, 16> bytes = HashToBytes(hash);
  return sqlite3_bind_blob64(statement_, index, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
}

int Query::Bind(int index, const std::optional<Hash128>& hash) {
  return hash ? Bind(index, *hash) : sqlite3_bind_null(statement_, index);
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const std::string& path,
                                                             Access access) {
  int flags = SQLITE_OPEN_READONLY;
  if (access == Access::kReadWrite) flags = SQLITE_OPEN_READWRITE;
  if (access == Access::kCreate) flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  std::string name = path;
  if (access == Access::kImmutable) {
    // A URI: every byte with a meaning in one is escaped.
    name = "file:";
    for (const char c : path) {
      const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '.' ||
                         c == '_' || c == '-';
      name += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
    }
    name += "?immutable=1";
    flags |= SQLITE_OPEN_URI;
  }
  // Its count of memory, which nobody reads, is one mutex for the whole process: a thread that is
  // preempted within it keeps all connections waiting. A program that has used SQLite keeps it.
  static const int configured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  (void)configured;
  sqlite3* handle = nullptr;
  errno = 0;
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Connection> connection(new Connection(path, handle));
  if (code != SQLITE_OK) return connection->Error(code, "open");
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_FKEY, 1, nullptr);
  return connection;
}

Connection::Connection(std::string path, sqlite3* handle)
    : path_(std::move(path)), handle_(handle) {}

Connection::~Connection() {
  if (stamp_ && !stamp_->IsOurs(*this)) {
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  for (const auto& [sql, statement] : prepared_) sqlite3_finalize(statement);
  sqlite3_close(handle_);
}

absl::Status Connection::Execute(const std::string& sql) {
  errno = 0;
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code, "write");
}

absl::StatusOr<sqlite3_stmt*> Connection::Prepare(const std::string& sql) {
  const auto found = prepared_.find(sql);
  if (found != prepared_.end()) return found->second;
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql.c_str(), static_cast<int>(sql.size()) + 1,
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code == SQLITE_ERROR) {
    // The statements and the schema's version are this program's: a table or column is gone.
    return absl::DataLossError(fmt::format("cannot read log '{}': {}{}", path_,
                                           sqlite3_errmsg(handle_),
                                           RemedyOf(absl::StatusCode::kDataLoss)));
  }
  if (code != SQLITE_OK) return Error(code, "read");
  prepared_.emplace(sql, statement);
  return statement;
}

absl::StatusOr<std::string> Connection::ReadRaw(int64_t offset, int64_t count) {
  HONE_ASSIGN_OR_RETURN(const int64_t size, FileBytes());
  std::string bytes(static_cast<size_t>(std::max<int64_t>(std::min(count, size - offset), 0)),
                    '\0');
  sqlite3_file* file = nullptr;
  int code = sqlite3_file_control(handle_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (code == SQLITE_OK && !bytes.empty()) {
    code = file->pMethods->xRead(file, bytes.data(), static_cast<int>(bytes.size()), offset);
  }
  if (code != SQLITE_OK) return Error(code, "read");
  return bytes;
}

absl::StatusOr<int64_t> Connection::FileBytes() {
  sqlite3_file* file = nullptr;
  int code = sqlite3_file_control(handle_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  sqlite3_int64 size = 0;
  if (code == SQLITE_OK) code = file->pMethods->xFileSize(file, &size);
  if (code != SQLITE_OK) return Error(code, "read");
  return static_cast<int64_t>(size);
}

std::optional<int64_t> Connection::FileChangedNs() {
  constexpr int64_t kNsPerSecond = 1'000'000'000;
  int moved = 0;
  sqlite3_file_control(handle_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  struct stat at {};
  if (moved != 0 || ::stat(path_.c_str(), &at) != 0) return std::nullopt;
  return static_cast<int64_t>(at.st_mtim.tv_sec) * kNsPerSecond + at.st_mtim.tv_nsec;
}

void Connection::WatchOverwriting() {
  stamp_ = std::make_unique<LogStamp>(*this);
  sqlite3_wal_hook(handle_, &FoldAfterCommit, this);
}

int Connection::FoldAfterCommit(void* self, sqlite3* handle, const char* schema, int frames) {
  constexpr int kFoldAt = 1000;  // SQLite's own
  auto& connection = *static_cast<Connection*>(self);
  if (frames < kFoldAt) return SQLITE_OK;
  const LogStamp::Writing writing(*connection.stamp_, connection);
  // The commit is durable whatever becomes of the fold.
  if (writing.allowed()) {
    sqlite3_wal_checkpoint_v2(handle, schema, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  }
  return SQLITE_OK;
}

absl::Status Connection::CheckNotOverwritten() {
  if (!stamp_ || stamp_->IsOurs(*this)) return absl::OkStatus();
  return absl::UnavailableError(
      fmt::format("the log '{0}' was overwritten by another program while it is in use; stop what "
                  "uses it, remove '{0}-wal' and '{0}-shm', and copy the log that you want there "
                  "once more; if nothing was copied there (touch), remove nothing and start again",
                  path_));
}

absl::Status Connection::CheckInPlace() {
  HONE_RETURN_IF_ERROR(CheckNotOverwritten());
  int moved = 0;
  // A VFS that does not know the question (SQLITE_NOTFOUND) leaves the answer as it is.
  sqlite3_file_control(handle_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved != 0) {
    return absl::UnavailableError(
        fmt::format("the log '{0}' was moved or removed while it is written; put it back (the same "
                    "file: mv), or stop what writes it, remove '{0}-wal' and '{0}-shm' and restore "
                    "a copy",
                    path_));
  }
  // SQLite does not ask for these. It makes them when it first reads and keeps them open; what it
  // holds of one that is gone it folds into the log when the connection is closed in order.
  for (Companion& companion : companions_) {
    const std::string path = path_ + companion.suffix;
    struct stat at {};
    const bool there = ::stat(path.c_str(), &at) == 0;
    if (there && !companion.file) companion.file = {at.st_dev, at.st_ino};
    if (!companion.file || (there && *companion.file == std::pair(at.st_dev, at.st_ino))) continue;
    return absl::UnavailableError(
        fmt::format("'{0}' was moved or removed while the log '{1}' is written; put it back (the "
                    "same file: mv), or end what writes the log (SIGTERM, not SIGKILL: in ending "
                    "it folds into the log what it holds) and start it again",
                    path, path_));
  }
  return absl::OkStatus();
}

absl::Status Connection::Error(int code, std::string_view doing) const {
  return StatusOf(handle_, code, errno, doing, path_);
}

absl::StatusOr<Transaction> Transaction::Begin(Connection& connection, const char* sql) {
  // Before anything is read of what may be another log.
  HONE_RETURN_IF_ERROR(connection.CheckNotOverwritten());
  HONE_RETURN_IF_ERROR(connection.Execute(sql));
  return Transaction(connection);
}

Transaction::~Transaction() {
  if (connection_ == nullptr || sqlite3_get_autocommit(connection_->handle()) != 0) return;
  sqlite3_exec(connection_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

absl::Status Transaction::Commit() {
  HONE_RETURN_IF_ERROR(connection_->CheckInPlace());
  HONE_RETURN_IF_ERROR(connection_->Execute("COMMIT"));
  connection_ = nullptr;
  return absl::OkStatus();
}

}  // namespace hone::db
