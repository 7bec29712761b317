#include <string>
#include <utility>

#include "db/sqlite_log_file.h"
#include "db/sqlite_rows.h"

namespace hone::db {
namespace {

class SqliteReadScope final : public Database::ReadScope {
 public:
  SqliteReadScope(Transaction transaction, bool* reading)
      : transaction_(std::move(transaction)), reading_(reading) {}
  ~SqliteReadScope() override { *reading_ = false; }

 private:
  Transaction transaction_;  // rolled back: nothing was written
  bool* reading_;
};

// WHERE … ORDER BY of a filter over the table with this alias. Every parameter is used, so that all
// scans bind the same ones; a condition that is not asked for is left out so that indices serve.
struct Condition {
  std::string sql;
  Hash128 session;
  Hash128 workload;
  std::string device_class;
  int64_t after_sequence = 0;
};

enum class ScanOf { kMeasured, kEvents };

Condition ConditionOf(const FactFilter& filter, const std::string& alias, ScanOf kind) {
  Condition condition{.after_sequence = filter.after_sequence};
  std::string where = alias + ".sequence > ?1";
  if (filter.local_only) where += " AND " + alias + ".merged = 0";
  if (filter.session) {
    condition.session = *filter.session;
    where += " AND " + alias + ".session = ?2";
  }
  if (kind == ScanOf::kMeasured && filter.workload) {
    condition.workload = *filter.workload;
    where += " AND " + alias + ".workload = ?3";
  }
  if (kind == ScanOf::kMeasured && filter.device_class) {
    condition.device_class = *filter.device_class;
    where += " AND d.device_class = ?4";
  }
  // The highest parameter is always there: binding a lower one that no condition uses is no error.
  condition.sql = " WHERE " + where + " AND ?5 ORDER BY " + alias + ".sequence";
  return condition;
}

absl::StatusOr<Query> RunScan(Connection& connection, const std::string& select,
                              const Condition& condition) {
  return connection.Run(select + condition.sql, condition.after_sequence, condition.session,
                        condition.workload, condition.device_class, 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Database::ReadScope>> SqliteLogFile::BeginRead() {
  if (reading_) return absl::FailedPreconditionError("a read scope of this log is open already");
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*connection_, "BEGIN"));
  // BEGIN alone takes no state yet; the first read does.
  HONE_RETURN_IF_ERROR(connection_->Number("SELECT count(*) FROM devices").status());
  reading_ = true;
  return std::unique_ptr<ReadScope>(
      std::make_unique<SqliteReadScope>(std::move(transaction), &reading_));
}

absl::Status SqliteLogFile::ScanWorkloads(const Visit<WorkloadRow>& visit) {
  HONE_ASSIGN_OR_RETURN(
      Query rows, connection_->Run(std::string(kSelectWorkloads) + "ORDER BY w.hash"));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();
    const StoredFact<WorkloadRow> stored = WorkloadOfRow(rows);
    HONE_RETURN_IF_ERROR(CheckContent(stored, "workload", stored.fact.hash, path()));
    HONE_RETURN_IF_ERROR(visit(stored.fact));
  }
}

absl::Status SqliteLogFile::ScanDevices(const Visit<Device>& visit) {
  HONE_ASSIGN_OR_RETURN(
      Query rows,
      connection_->Run("SELECT id, device_class, fingerprint FROM devices ORDER BY id"));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();
    const Device device{.device_class = rows.Text(1), .fingerprint = rows.Text(2)};
    if (DeviceId(device) != rows.Hash(0)) return DamagedFact("device", rows.Hash(0), path());
    HONE_RETURN_IF_ERROR(visit(device));
  }
}

absl::Status SqliteLogFile::ScanSessions(const Visit<StoredSession>& visit) {
  HONE_ASSIGN_OR_RETURN(
      Query rows, connection_->Run(std::string(kSelectSessions) + "ORDER BY s.sequence"));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();
    StoredFact<Session> stored = SessionOfRow(rows);
    HONE_RETURN_IF_ERROR(CheckContent(stored, "session", stored.fact.id, path()));
    HONE_RETURN_IF_ERROR(
        visit(StoredSession{.session = std::move(stored.fact), .merged = stored.merged}));
  }
}

absl::Status SqliteLogFile::ScanBlobs(const Visit<Blob>& visit) {
  HONE_ASSIGN_OR_RETURN(Query rows,
                        connection_->Run("SELECT digest, bytes FROM blobs ORDER BY digest"));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();
    HONE_RETURN_IF_ERROR(visit(Blob{.digest = rows.Text(0), .bytes = rows.Text(1)}));
  }
}

absl::Status SqliteLogFile::ScanRecords(const FactFilter& filter,
                                        const Visit<RankedRecord>& visit) {
  HONE_ASSIGN_OR_RETURN(Query rows, RunScan(*connection_, kSelectRecords,
                                            ConditionOf(filter, "r", ScanOf::kMeasured)));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();
    HONE_ASSIGN_OR_RETURN(RankedRecord ranked, RankedRecordOfRow(rows, "", path()));
    HONE_ASSIGN_OR_RETURN(Query samples,
                          connection_->Run("SELECT values_ns FROM samples WHERE record = ?",
                                           ranked.record.id));
    HONE_ASSIGN_OR_RETURN(const bool any, samples.Next());
    if (any) ranked.record.samples_ns = DecodeSamples(samples.Bytes(0));
    HONE_RETURN_IF_ERROR(visit(ranked));
  }
}

absl::Status SqliteLogFile::ScanAttempts(const FactFilter& filter, const Visit<Attempt>& visit) {
  HONE_ASSIGN_OR_RETURN(Query rows, RunScan(*connection_, kSelectAttempts,
                                            ConditionOf(filter, "a", ScanOf::kMeasured)));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();
    const StoredFact<Attempt> stored = AttemptOfRow(rows);
    HONE_RETURN_IF_ERROR(CheckContent(stored, "attempt", stored.fact.id, path()));
    HONE_RETURN_IF_ERROR(visit(stored.fact));
  }
}

absl::Status SqliteLogFile::ScanEvents(const FactFilter& filter, const Visit<Event>& visit) {
  HONE_ASSIGN_OR_RETURN(Query rows, RunScan(*connection_, kSelectEvents,
                                            ConditionOf(filter, "e", ScanOf::kEvents)));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return absl::OkStatus();
    const StoredFact<Event> stored = EventOfRow(rows);
    HONE_RETURN_IF_ERROR(CheckContent(stored, "event", stored.fact.id, path()));
    HONE_RETURN_IF_ERROR(visit(stored.fact));
  }
}

absl::StatusOr<LogStats> SqliteLogFile::Stats() {
  LogStats stats;
  const std::pair<const char*, int64_t*> counts[] = {
      {"SELECT count(*) FROM workloads", &stats.workloads},
      {"SELECT count(*) FROM traces", &stats.traces},
      {"SELECT count(*) FROM devices", &stats.devices},
      {"SELECT count(*) FROM sessions", &stats.sessions},
      {"SELECT count(*) FROM attempts", &stats.attempts},
      {"SELECT count(*) FROM records", &stats.records},
      {"SELECT count(*) FROM records WHERE merged = 1", &stats.merged_records},
      {"SELECT count(*) FROM events", &stats.events},
      {"SELECT count(*) FROM blobs", &stats.blobs}};
  for (const auto& [sql, count] : counts) {
    HONE_ASSIGN_OR_RETURN(*count, connection_->Number(sql));
  }
  HONE_ASSIGN_OR_RETURN(stats.file_bytes, connection_->FileBytes());
  {
    HONE_ASSIGN_OR_RETURN(Query rows,
                          connection_->Run("SELECT rigor, count(*) FROM records GROUP BY rigor"));
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
      if (!row) break;
      if (rows.Int(0) >= 0 && rows.Int(0) < kNumRigors) {
        stats.by_rigor[static_cast<size_t>(rows.Int(0))] = rows.Int(1);
      }
    }
  }
  HONE_ASSIGN_OR_RETURN(
      Query rows, connection_->Run("SELECT outcome, count(*) FROM attempts GROUP BY outcome"));
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return stats;
    if (rows.Int(0) >= 0 && rows.Int(0) < measure::kNumOutcomes) {
      stats.by_outcome[static_cast<size_t>(rows.Int(0))] = rows.Int(1);
    }
  }
}

}  // namespace hone::db
