#include <functional>
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

template <typename T>
absl::Status SqliteLogFile::ScanRows(absl::StatusOr<Query> rows,
                                     const std::function<absl::StatusOr<T>(const Query& row)>& read,
                                     const Visit<T>& visit) {
  const auto skips = [&](const absl::Status& status) {
    // kInternal: a whole table is gone from the schema.
    const bool damage = status.code() == absl::StatusCode::kDataLoss ||
                        status.code() == absl::StatusCode::kInternal;
    if (!skip_damaged_ || !damage) return false;
    ++damaged_facts_;
    return true;
  };
  if (!rows.ok()) return skips(rows.status()) ? absl::OkStatus() : rows.status();
  for (;;) {
    const absl::StatusOr<bool> row = rows->Next();
    if (!row.ok()) return skips(row.status()) ? absl::OkStatus() : row.status();
    if (!*row) return absl::OkStatus();
    const absl::StatusOr<T> fact = read(*rows);
    if (fact.ok()) {
      HONE_RETURN_IF_ERROR(visit(*fact));
    } else if (!skips(fact.status())) {
      return fact.status();
    }
  }
}

absl::Status SqliteLogFile::ScanWorkloads(const Visit<WorkloadRow>& visit) {
  return ScanRows<WorkloadRow>(
      connection_->Run(std::string(kSelectWorkloads) + "ORDER BY w.hash"),
      [&](const Query& row) -> absl::StatusOr<WorkloadRow> {
        StoredFact<WorkloadRow> stored = WorkloadOfRow(row);
        HONE_RETURN_IF_ERROR(CheckContent(stored, "workload", stored.fact.hash, path()));
        return std::move(stored.fact);
      },
      visit);
}

absl::Status SqliteLogFile::ScanDevices(const Visit<Device>& visit) {
  return ScanRows<Device>(
      connection_->Run("SELECT id, device_class, fingerprint FROM devices ORDER BY id"),
      [&](const Query& row) -> absl::StatusOr<Device> {
        Device device{.device_class = row.Text(1), .fingerprint = row.Text(2)};
        if (DeviceId(device) != row.Hash(0)) return DamagedFact("device", row.Hash(0), path());
        return device;
      },
      visit);
}

absl::Status SqliteLogFile::ScanSessions(const Visit<StoredSession>& visit) {
  return ScanRows<StoredSession>(
      connection_->Run(std::string(kSelectSessions) + "ORDER BY s.sequence"),
      [&](const Query& row) -> absl::StatusOr<StoredSession> {
        StoredFact<Session> stored = SessionOfRow(row);
        HONE_RETURN_IF_ERROR(CheckContent(stored, "session", stored.fact.id, path()));
        return StoredSession{.session = std::move(stored.fact), .merged = stored.merged};
      },
      visit);
}

absl::Status SqliteLogFile::ScanBlobs(const Visit<Blob>& visit) {
  return ScanRows<Blob>(
      connection_->Run("SELECT digest, bytes FROM blobs ORDER BY digest"),
      [&](const Query& row) -> absl::StatusOr<Blob> {
        Blob blob{.digest = row.Text(0), .bytes = row.Text(1)};
        if (CheckFact(blob).ok()) return blob;
        return DamagedFact("blob", HashBytes(blob.digest), path());
      },
      visit);
}

absl::Status SqliteLogFile::ScanRecords(const FactFilter& filter,
                                        const Visit<RankedRecord>& visit) {
  return ScanRows<RankedRecord>(
      RunScan(*connection_, kSelectRecords, ConditionOf(filter, "r", ScanOf::kMeasured)),
      [&](const Query& row) -> absl::StatusOr<RankedRecord> {
        HONE_ASSIGN_OR_RETURN(RankedRecord ranked, RankedRecordOfRow(row, "", path()));
        HONE_RETURN_IF_ERROR(ReadSamples(ranked.record));
        return ranked;
      },
      visit);
}

absl::Status SqliteLogFile::ScanAttempts(const FactFilter& filter, const Visit<Attempt>& visit) {
  return ScanRows<Attempt>(
      RunScan(*connection_, kSelectAttempts, ConditionOf(filter, "a", ScanOf::kMeasured)),
      [&](const Query& row) -> absl::StatusOr<Attempt> {
        StoredFact<Attempt> stored = AttemptOfRow(row);
        HONE_RETURN_IF_ERROR(CheckContent(stored, "attempt", stored.fact.id, path()));
        return std::move(stored.fact);
      },
      visit);
}

absl::Status SqliteLogFile::ScanEvents(const FactFilter& filter, const Visit<Event>& visit) {
  return ScanRows<Event>(
      RunScan(*connection_, kSelectEvents, ConditionOf(filter, "e", ScanOf::kEvents)),
      [&](const Query& row) -> absl::StatusOr<Event> {
        StoredFact<Event> stored = EventOfRow(row);
        HONE_RETURN_IF_ERROR(CheckContent(stored, "event", stored.fact.id, path()));
        return std::move(stored.fact);
      },
      visit);
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
