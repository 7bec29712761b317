#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "db/database.h"

namespace hone::db {

/// How a log is opened.
enum class OpenMode : uint8_t {
  kWrite,     ///< the one writer; makes the file where there is none
  kRead,      ///< beside a writer; a snapshot is opened as kSnapshot
  kSnapshot,  ///< a file that LogFile::Snapshot wrote, and no other
};

struct OpenOptions {
  OpenMode mode = OpenMode::kRead;
  /// 64 hexadecimal digits: the snapshot must have this SHA-256 (kRead finds a pinned live log
  /// wrong). Empty: any.
  std::string sha256;
  /// Scans pass over damaged facts (LogFile::damaged_facts) instead of ending: to save the others
  /// by MergeLog into a new log. Not for kWrite.
  bool skip_damaged = false;
  /// kWrite: what accumulates in the WAL is folded into the file by a thread of its own, and
  /// commits wait for a short rest of it, unless the disk is slower than they are. For hundreds of
  /// commits a second; not for Compact, whose own checkpoint it may be in the way of.
  bool checkpoints_apart = false;
};

struct VerifyReport {
  int64_t facts = 0;                  ///< looked at
  std::vector<std::string> problems;  ///< one line each, at most 100; empty: the log is sound
};

struct CompactReport {
  int64_t folded_records = 0;
  int64_t damaged_records = 0;  ///< left as they are: their samples do not fit their hash
  int64_t bytes_before = 0;
  int64_t bytes_after = 0;
};

/// Compaction keeps a record's samples as this many quantiles, evenly from minimum to maximum.
inline constexpr int kSampleQuantiles = 17;

/// A Database in one SQLite file (docs/formats/log.md).
class LogFile : public Database {
 public:
  virtual const std::string& path() const = 0;

  /// Facts that scans passed over so far, see OpenOptions::skip_damaged. Where pages are lost
  /// these are the sequence numbers missing there; damage that reaches to the end of a table counts
  /// as one, for nothing says how many stood there.
  virtual int64_t damaged_facts() const = 0;

  /// Writes everything committed so far to `path` as a file that never changes again: it can be
  /// read where nothing may be written, and be pinned by the returned SHA-256. An existing file is
  /// replaced as a whole. Works in every mode, beside a writer too.
  virtual absl::StatusOr<std::string> Snapshot(const std::string& path) = 0;

  /// SQLite's integrity check, references, and every fact against its content hash. Damage is a
  /// problem in the report; an error means that the check could not be made.
  virtual absl::StatusOr<VerifyReport> Verify() = 0;

  /// Folds samples to quantiles and gives free pages back. kWrite only. Needs room for a copy.
  virtual absl::StatusOr<CompactReport> Compact() = 0;
};

/// What stands under a name, told by its first bytes; nothing is locked or changed.
enum class FileKind : uint8_t {
  kOther,     ///< nothing, something that cannot be read, or no log of Hone
  kLog,       ///< a live one
  kSnapshot,  ///< of LogFile::Snapshot
};
FileKind KindOfFile(const std::string& path);

/// Opens a log; the object owns its lock and connection.
///
/// kNotFound        no such file (or, for kWrite, no such folder)
/// kUnavailable     another writer has it (the message has its pid and host, and what to do)
/// kDataLoss        damaged; the file is left as it was
/// kInvalidArgument not a log of Hone; left as it was. Or a digest that does not fit
/// kFailedPrecondition  written by a newer Hone; a snapshot opened for writing; a live log where
///                  a snapshot was asked for
/// kPermissionDenied  may not be read or written; a live log in a folder that may not be written
absl::StatusOr<std::unique_ptr<LogFile>> OpenLog(const std::string& path,
                                                 const OpenOptions& options);

}  // namespace hone::db
