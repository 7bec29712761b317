#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/log_file.h"
#include "db/log_lock.h"
#include "db/migrations/migration.h"
#include "db/recheck.h"
#include "db/sqlite_checkpointer.h"
#include "db/sqlite_connection.h"

namespace hone::db {

/// LogFile over one Connection. Its methods stand in sqlite_append.cc, sqlite_find.cc,
/// sqlite_scan.cc and sqlite_maintain.cc.
class SqliteLogFile final : public LogFile {
 public:
  /// `lock` for a writer alone; it is released after the connection is closed.
  SqliteLogFile(const OpenOptions& options, std::optional<LogLock> lock,
                std::unique_ptr<Connection> connection)
      : mode_(options.mode),
        skip_damaged_(options.skip_damaged),
        lock_(std::move(lock)),
        connection_(std::move(connection)) {}
  ~SqliteLogFile() override;

  const std::string& path() const override { return connection_->path(); }
  int64_t damaged_facts() const override { return damaged_facts_; }

  absl::StatusOr<Appended> Append(const Batch& batch, Origin origin) override;
  absl::StatusOr<std::unique_ptr<ReadScope>> BeginRead() override;
  absl::StatusOr<std::vector<RankedRecord>> TopRecords(const RecordQuery& query,
                                                       int limit) override;
  absl::StatusOr<std::vector<RankedRecord>> SameIsaRecords(const RecordQuery& query) override;
  absl::StatusOr<std::vector<WorkloadRow>> MeasuredWorkloads(const std::string& isa,
                                                             int measurement_policy) override;
  absl::StatusOr<std::vector<ModelVerdict>> ModelVerdicts(const Hash128& model) override;
  absl::StatusOr<std::optional<WorkloadRow>> FindWorkload(const Hash128& hash) override;
  absl::StatusOr<std::optional<RankedRecord>> FindRecord(const Hash128& id) override;
  absl::StatusOr<std::optional<Session>> FindSession(const Hash128& id) override;
  absl::StatusOr<std::optional<std::string>> FindBlob(const std::string& digest) override;
  absl::Status ScanWorkloads(const Visit<WorkloadRow>& visit) override;
  absl::Status ScanDevices(const Visit<Device>& visit) override;
  absl::Status ScanSessions(const Visit<StoredSession>& visit) override;
  absl::Status ScanBlobs(const Visit<Blob>& visit) override;
  absl::Status ScanRecords(const FactFilter& filter, const Visit<RankedRecord>& visit) override;
  absl::Status ScanAttempts(const FactFilter& filter, const Visit<Attempt>& visit) override;
  absl::Status ScanValues(const FactFilter& filter, const Visit<TraceValues>& visit) override;
  absl::Status ScanEvents(const FactFilter& filter, const Visit<Event>& visit) override;
  absl::StatusOr<LogStats> Stats() override;

  absl::StatusOr<std::string> Snapshot(const std::string& path) override;
  absl::StatusOr<VerifyReport> Verify() override;
  absl::StatusOr<CompactReport> Compact() override;

  /// OpenOptions::checkpoints_apart, from now on.
  absl::Status CheckpointApart();
  /// For tests; null where there is none.
  const Checkpointer* checkpointer() const { return checkpointer_.get(); }

  /// Append, but for the transaction: the caller holds one (db/sqlite_farm.cc).
  absl::StatusOr<Appended> AppendInTransaction(const Batch& batch, Origin origin);

  /// For sqlite_farm.cc; and for tests, to damage or limit the file through SQLite.
  Connection& connection() { return *connection_; }

 private:
  /// The rows of a table from a place in it on.
  using RowsFrom = std::function<absl::StatusOr<Query>(int64_t place)>;
  struct Scan {
    RowsFrom rows_from;
    int place_column = 0;
    int64_t first = 1;  ///< place
  };
  /// Reads and visits row after row; with skip_damaged_, damage is counted and passed over, a fact
  /// or a whole page.
  template <typename T>
  absl::Status ScanRows(const Scan& scan,
                        const std::function<absl::StatusOr<T>(const Query& row)>& read,
                        const Visit<T>& visit);
  /// ScanRows from `*place` to the end, or to rows that cannot be read: then false, and `*place` is
  /// behind the last one that could.
  template <typename T>
  absl::StatusOr<bool> ScanReadable(const Scan& scan, int64_t* place,
                                    const std::function<absl::StatusOr<T>(const Query& row)>& read,
                                    const Visit<T>& visit);
  /// Whether damage of this kind is passed over; counts it.
  bool PassesOver(const absl::Status& status);
  /// Scan of a table that has no sequence: by id. With skip_damaged_ by rowid instead, which needs
  /// no index and goes on behind a lost page.
  Scan ScanById(const std::string& select, const std::string& id, int place_column);
  absl::Status ReadSamples(TuningRecord& record);
  /// Records of the Workload that were measured anew.
  absl::StatusOr<ReplacedRecords> ReplacedOf(const Hash128& workload);
  /// The first row of each group, at most `limit`, in the order of the rows (number of a record,
  /// two columns of its group, id, merged), without those that were measured anew.
  absl::StatusOr<std::vector<RankedRecord>> BestOfGroups(Query ranked, const RecordQuery& asked,
                                                         size_t limit);

  const OpenMode mode_;
  const bool skip_damaged_;
  std::optional<LogLock> lock_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Checkpointer> checkpointer_;  // ends before the connection it serves
  bool reading_ = false;                        // a ReadScope lives
  int64_t damaged_facts_ = 0;
};

}  // namespace hone::db
