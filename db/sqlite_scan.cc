#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
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
};

enum class ScanOf { kMeasured, kEvents };

Condition ConditionOf(const FactFilter& filter, const std::string& alias, ScanOf kind) {
  Condition condition;
  std::string where = alias + ".sequence >= ?1";
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
                              const Condition& condition, int64_t place) {
  return connection.Run(select + condition.sql, place, condition.session, condition.workload,
                        condition.device_class, 1);
}

constexpr int64_t kLastPlace = std::numeric_limits<int64_t>::max();

int64_t After(int64_t place) { return place == kLastPlace ? place : place + 1; }

// The first place from `lost` on where rows can be read again, or the table ends; nothing where no
// page behind can be read. Pages of rows are looked for one place at a time; when that has taken
// long, a whole subtree is gone and the steps grow with what is behind, so that the end of the
// numbers is reached in some ten thousand steps; the last step is then halved.
std::optional<int64_t> FindReadable(
    const std::function<absl::StatusOr<Query>(int64_t place)>& rows_from, int64_t lost) {
  constexpr int64_t kSingleSteps = 4096, kShare = 256;
  const auto readable = [&](int64_t place) {
    absl::StatusOr<Query> rows = rows_from(place);
    return rows.ok() && rows->Next().ok();
  };
  int64_t bad = lost;
  int64_t good = lost;
  while (!readable(good)) {
    if (good == kLastPlace) return std::nullopt;
    bad = good;
    const int64_t behind = bad - lost;
    const int64_t step = behind < kSingleSteps ? 1 : behind / kShare;
    good = bad > kLastPlace - step ? kLastPlace : bad + step;
  }
  while (good - bad > 1) {
    const int64_t middle = bad + (good - bad) / 2;
    (readable(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Database::ReadScope>> SqliteLogFile::BeginRead() {
  if (reading_) return absl::FailedPreconditionError("a read scope of this log is open already");
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*connection_, "BEGIN"));
  // BEGIN alone takes no state yet; the first read does.
  // Reads the schema, not a table: a damaged table must not keep the others from being saved.
  HONE_RETURN_IF_ERROR(connection_->Number("SELECT count(*) FROM sqlite_schema").status());
  reading_ = true;
  return std::unique_ptr<ReadScope>(
      std::make_unique<SqliteReadScope>(std::move(transaction), &reading_));
}

bool SqliteLogFile::PassesOver(const absl::Status& status) {
  if (!skip_damaged_ || status.code() != absl::StatusCode::kDataLoss) return false;
  ++damaged_facts_;
  return true;
}

template <typename T>
absl::StatusOr<bool> SqliteLogFile::ScanReadable(
    const Scan& scan, int64_t* place,
    const std::function<absl::StatusOr<T>(const Query& row)>& read, const Visit<T>& visit) {
  HONE_ASSIGN_OR_RETURN(Query rows, scan.rows_from(*place));
  for (;;) {
    const absl::StatusOr<bool> row = rows.Next();
    if (!row.ok()) {
      if (skip_damaged_ && row.status().code() == absl::StatusCode::kDataLoss) return false;
      return row.status();
    }
    if (!*row) return true;
    *place = std::max(*place, After(rows.Int(scan.place_column)));
    const absl::StatusOr<T> fact = read(rows);
    if (fact.ok()) {
      HONE_RETURN_IF_ERROR(visit(*fact));
    } else if (!PassesOver(fact.status())) {
      return fact.status();
    }
  }
}

template <typename T>
absl::Status SqliteLogFile::ScanRows(const Scan& scan,
                                     const std::function<absl::StatusOr<T>(const Query& row)>& read,
                                     const Visit<T>& visit) {
  absl::Status failed;  // the visitor's errors are never damage
  const Visit<T> kept = [&](const T& fact) { return failed = visit(fact); };
  int64_t place = scan.first;
  for (;;) {
    const absl::StatusOr<bool> ended = ScanReadable<T>(scan, &place, read, kept);
    HONE_RETURN_IF_ERROR(failed);
    if (!ended.ok()) return PassesOver(ended.status()) ? absl::OkStatus() : ended.status();
    if (*ended) return absl::OkStatus();
    const std::optional<int64_t> readable = FindReadable(scan.rows_from, place);
    damaged_facts_ += readable ? std::max<int64_t>(*readable - place, 1) : 1;
    if (!readable) return absl::OkStatus();
    place = *readable;
  }
}

SqliteLogFile::Scan SqliteLogFile::ScanById(const std::string& select, const std::string& id,
                                            int place_column) {
  std::string sql = select;
  sql += skip_damaged_ ? " WHERE rowid >= ?1 ORDER BY rowid" : " WHERE ?1 >= 0 ORDER BY " + id;
  return {.rows_from = [this, sql](int64_t place) { return connection_->Run(sql, place); },
          .place_column = place_column};
}

absl::Status SqliteLogFile::ScanWorkloads(const Visit<WorkloadRow>& visit) {
  return ScanRows<WorkloadRow>(
      ScanById(kSelectWorkloads, "w.hash", kPlaceInWorkloads),
      [&](const Query& row) -> absl::StatusOr<WorkloadRow> {
        StoredFact<WorkloadRow> stored = WorkloadOfRow(row);
        HONE_RETURN_IF_ERROR(CheckContent(stored, "workload", stored.fact.hash, path()));
        return std::move(stored.fact);
      },
      visit);
}

absl::Status SqliteLogFile::ScanDevices(const Visit<Device>& visit) {
  return ScanRows<Device>(
      ScanById("SELECT id, device_class, fingerprint, rowid FROM devices", "id", 3),
      [&](const Query& row) -> absl::StatusOr<Device> {
        Device device{.device_class = row.Text(1), .fingerprint = row.Text(2)};
        if (DeviceId(device) != row.Hash(0)) return DamagedFact("device", row.Hash(0), path());
        return device;
      },
      visit);
}

absl::Status SqliteLogFile::ScanSessions(const Visit<StoredSession>& visit) {
  const RowsFrom rows_from = [&](int64_t place) {
    return connection_->Run(
        std::string(kSelectSessions) + "WHERE s.sequence >= ? ORDER BY s.sequence", place);
  };
  return ScanRows<StoredSession>(
      {.rows_from = rows_from, .place_column = kPlaceInSessions},
      [&](const Query& row) -> absl::StatusOr<StoredSession> {
        StoredFact<Session> stored = SessionOfRow(row);
        HONE_RETURN_IF_ERROR(CheckContent(stored, "session", stored.fact.id, path()));
        return StoredSession{.session = std::move(stored.fact), .merged = stored.merged};
      },
      visit);
}

absl::Status SqliteLogFile::ScanBlobs(const Visit<Blob>& visit) {
  return ScanRows<Blob>(
      ScanById("SELECT digest, bytes, rowid FROM blobs", "digest", 2),
      [&](const Query& row) -> absl::StatusOr<Blob> {
        Blob blob{.digest = row.Text(0), .bytes = row.Text(1)};
        if (CheckFact(blob).ok()) return blob;
        return DamagedFact("blob", HashBytes(blob.digest), path());
      },
      visit);
}

absl::Status SqliteLogFile::ScanRecords(const FactFilter& filter,
                                        const Visit<RankedRecord>& visit) {
  const Condition condition = ConditionOf(filter, "r", ScanOf::kMeasured);
  const RowsFrom rows_from = [&](int64_t place) {
    return RunScan(*connection_, kSelectRecords, condition, place);
  };
  return ScanRows<RankedRecord>(
      {rows_from, kPlaceInRecords, After(filter.after_sequence)},
      [&](const Query& row) -> absl::StatusOr<RankedRecord> {
        HONE_ASSIGN_OR_RETURN(RankedRecord ranked, RankedRecordOfRow(row, "", path()));
        HONE_RETURN_IF_ERROR(ReadSamples(ranked.record));
        return ranked;
      },
      visit);
}

absl::Status SqliteLogFile::ScanAttempts(const FactFilter& filter, const Visit<Attempt>& visit) {
  const Condition condition = ConditionOf(filter, "a", ScanOf::kMeasured);
  const RowsFrom rows_from = [&](int64_t place) {
    return RunScan(*connection_, kSelectAttempts, condition, place);
  };
  return ScanRows<Attempt>(
      {rows_from, kPlaceInAttempts, After(filter.after_sequence)},
      [&](const Query& row) -> absl::StatusOr<Attempt> {
        StoredFact<Attempt> stored = AttemptOfRow(row);
        HONE_RETURN_IF_ERROR(CheckContent(stored, "attempt", stored.fact.id, path()));
        return std::move(stored.fact);
      },
      visit);
}

absl::Status SqliteLogFile::ScanValues(const FactFilter& filter, const Visit<TraceValues>& visit) {
  const absl::StatusOr<bool> has_values = HasValues(*connection_);
  if (!has_values.ok() && !PassesOver(has_values.status())) return has_values.status();
  if (!has_values.value_or(false)) return absl::OkStatus();
  const std::string workload = filter.workload ? "AND v.workload = ?2 " : "AND ?2 IS NOT NULL ";
  const RowsFrom rows_from = [&](int64_t place) {
    return connection_->Run(
        kSelectValues + ("WHERE v.sequence >= ?1 " + workload) + "ORDER BY v.sequence", place,
        filter.workload.value_or(Hash128{}));
  };
  return ScanRows<TraceValues>(
      {.rows_from = rows_from, .place_column = kPlaceInValues},
      [&](const Query& row) -> absl::StatusOr<TraceValues> {
        StoredFact<TraceValues> stored = ValuesOfRow(row);
        HONE_RETURN_IF_ERROR(CheckContent(stored, "values of trace", stored.fact.trace, path()));
        return std::move(stored.fact);
      },
      visit);
}

absl::Status SqliteLogFile::ScanEvents(const FactFilter& filter, const Visit<Event>& visit) {
  const Condition condition = ConditionOf(filter, "e", ScanOf::kEvents);
  const RowsFrom rows_from = [&](int64_t place) {
    return RunScan(*connection_, kSelectEvents, condition, place);
  };
  return ScanRows<Event>(
      {rows_from, kPlaceInEvents, After(filter.after_sequence)},
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
