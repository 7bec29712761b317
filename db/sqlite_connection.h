#pragma once

#include <sqlite3.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

#include "base/core/hash128.h"
#include "base/status.h"

// SQLite behind Status. Only db/sqlite_*.cc include this.
namespace hone::db {

class LogStamp;

/// Sixteen bytes, big-endian: memcmp order is the order of Hash128.
std::array<unsigned char, 16> HashToBytes(const Hash128& hash);

/// A statement on its way through its rows; resets itself when destroyed. What it was bound to is
/// copied. Views it returns hold until the next Next().
class Query {
 public:
  explicit Query(sqlite3_stmt* statement) : statement_(statement) {}
  Query(Query&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}
  Query& operator=(Query&&) = delete;
  ~Query();

  /// Moves to the next row; false after the last.
  absl::StatusOr<bool> Next();
  /// Runs to the end.
  absl::Status Finish();

  int64_t Int(int column) const { return sqlite3_column_int64(statement_, column); }
  double Real(int column) const { return sqlite3_column_double(statement_, column); }
  /// Text or blob.
  std::string_view Bytes(int column) const;
  std::string Text(int column) const { return std::string(Bytes(column)); }
  /// Zero for NULL and for what is not 16 bytes long (the content hash will not fit then).
  Hash128 Hash(int column) const;

  // Parameters are numbered from 1.
  int Bind(int index, int64_t value) { return sqlite3_bind_int64(statement_, index, value); }
  int Bind(int index, int value) { return Bind(index, static_cast<int64_t>(value)); }
  int Bind(int index, bool value) { return Bind(index, static_cast<int64_t>(value)); }
  int Bind(int index, double value) { return sqlite3_bind_double(statement_, index, value); }
  int Bind(int index, std::string_view text);
  int Bind(int index, const std::string& text) { return Bind(index, std::string_view(text)); }
  int Bind(int index, const Hash128& hash);
  int Bind(int index, const std::optional<Hash128>& hash);
  struct BlobBytes {
    std::string_view bytes;
  };
  int Bind(int index, BlobBytes blob);

 private:
  sqlite3_stmt* statement_;
};

/// One open file. Not thread-safe.
class Connection {
 public:
  enum class Access : uint8_t {
    kReadWrite,  ///< an existing file
    kCreate,     ///< makes it
    kReadOnly,
    kImmutable,  ///< read only, without locks: for files that never change
  };

  /// `path` also names the file in messages.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const std::string& path, Access access);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::string& path() const { return path_; }
  sqlite3* handle() const { return handle_; }

  /// Runs statements that return nothing of interest.
  absl::Status Execute(const std::string& sql);

  /// Prepares (once; kept), binds and returns a statement. A statement runs once at a time.
  template <typename... Args>
  absl::StatusOr<Query> Run(const std::string& sql, const Args&... args) {
    HONE_ASSIGN_OR_RETURN(sqlite3_stmt * statement, Prepare(sql));
    Query query(statement);
    int index = 0;
    int code = SQLITE_OK;
    ((code = code == SQLITE_OK ? query.Bind(++index, args) : code), ...);
    if (code != SQLITE_OK) return Error(code, "bind");
    return query;
  }
  /// Run and Finish.
  template <typename... Args>
  absl::Status Do(const std::string& sql, const Args&... args) {
    HONE_ASSIGN_OR_RETURN(Query query, Run(sql, args...));
    return query.Finish();
  }
  /// The first column of the one row; 0 where there is none.
  template <typename... Args>
  absl::StatusOr<int64_t> Number(const std::string& sql, const Args&... args) {
    HONE_ASSIGN_OR_RETURN(Query query, Run(sql, args...));
    HONE_ASSIGN_OR_RETURN(const bool row, query.Next());
    return row ? query.Int(0) : 0;
  }

  /// Bytes of the main file through SQLite's own descriptor: opening it any other way would drop
  /// this process's locks on it. Fewer than `count` at the end of the file.
  absl::StatusOr<std::string> ReadRaw(int64_t offset, int64_t count);
  absl::StatusOr<int64_t> FileBytes();
  /// When the main file was last written, in ns since 1970; absent where its name leads to another
  /// file or to none.
  std::optional<int64_t> FileChangedNs();

  /// kUnavailable: under its name, or that of its write-ahead log or its index, there is no longer
  /// the file that was opened, and what is written now goes with it. Looks at each name; ok where
  /// that cannot be found out.
  absl::Status CheckInPlace();
  /// kUnavailable: somebody else has written the file. Ok before WatchOverwriting.
  absl::Status CheckNotOverwritten();

  /// For the one writer of a log: from now on CheckNotOverwritten knows what the file should be,
  /// automatic checkpoints fold nothing into what is not ours, and closing does not either.
  void WatchOverwriting();
  /// Null before WatchOverwriting.
  LogStamp* stamp() { return stamp_.get(); }

  /// What `code` means, with the file's name and what to do. `doing` says at what.
  absl::Status Error(int code, std::string_view doing) const;

 private:
  Connection(std::string path, sqlite3* handle);
  absl::StatusOr<sqlite3_stmt*> Prepare(const std::string& sql);

  /// SQLite's after each commit, with the frames of the WAL.
  static int FoldAfterCommit(void* self, sqlite3* handle, const char* schema, int frames);

  /// One of the two files beside the log, as first seen.
  struct Companion {
    const char* suffix;
    std::optional<std::pair<dev_t, ino_t>> file = std::nullopt;
  };

  std::string path_;
  sqlite3* handle_;
  std::unique_ptr<LogStamp> stamp_;
  std::array<Companion, 2> companions_ = {Companion{"-wal"}, Companion{"-shm"}};
  std::map<std::string, sqlite3_stmt*> prepared_;
};

/// BEGIN now, ROLLBACK unless committed. What goes wrong in rolling back is not reported: SQLite
/// then undoes the transaction when the file is next opened.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Connection& connection, const char* sql);
  Transaction(Transaction&& other) noexcept
      : connection_(std::exchange(other.connection_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  /// Connection::CheckInPlace before: nothing is durable in a file that nobody will find.
  absl::Status Commit();

 private:
  explicit Transaction(Connection& connection) : connection_(&connection) {}
  Connection* connection_;
};

}  // namespace hone::db
