#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"

#include "db/publish_file.h"
#include "db/sqlite_header.h"
#include "db/sqlite_log_file.h"
#include "db/sqlite_migrate.h"
#include "db/sqlite_rows.h"
#include "db/sqlite_stamp.h"

namespace hone::db {
namespace {

constexpr size_t kMaxProblems = 100;

// Collects what is wrong with a log, table by table; damage in one hides nothing in the others.
class Verifier {
 public:
  explicit Verifier(Connection& connection) : connection_(connection) {}

  absl::StatusOr<VerifyReport> Run();

 private:
  using CheckRow = std::string (*)(const Query& row);  // what is wrong; empty: nothing

  void Add(std::string problem) {
    if (report_.problems.size() < kMaxProblems) report_.problems.push_back(std::move(problem));
  }
  /// Runs `check` on every row; damage that stops the scan is a problem too.
  absl::Status Check(const std::string& table, const std::string& sql, CheckRow check);

  Connection& connection_;
  VerifyReport report_;
};

std::string Differs(const std::string& kind, const Hash128& id) {
  return fmt::format("{} {}: content does not fit its hash", kind, id.ToHex());
}

template <typename T>
std::string CheckStored(const StoredFact<T>& stored, const std::string& kind, const Hash128& id) {
  if (ContentHash(stored.fact) != stored.content) return Differs(kind, id);
  const absl::Status valid = CheckFact(stored.fact);
  return valid.ok() ? "" : StatusMessage(valid);
}

std::string CheckHashed(const std::string& kind, const Query& row) {
  return HashBytes(row.Bytes(1)) == row.Hash(0) ? "" : Differs(kind, row.Hash(0));
}

absl::Status Verifier::Check(const std::string& table, const std::string& sql, CheckRow check) {
  const auto scan = [&]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(Query rows, connection_.Run(sql));
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
      if (!row) return absl::OkStatus();
      ++report_.facts;
      std::string problem = check(rows);
      if (!problem.empty()) Add(std::move(problem));
    }
  };
  const absl::Status scanned = scan();
  if (scanned.code() != absl::StatusCode::kDataLoss) return scanned;
  Add(fmt::format("{}: {}", table, sqlite3_errmsg(connection_.handle())));
  return absl::OkStatus();
}

absl::StatusOr<VerifyReport> Verifier::Run() {
  HONE_RETURN_IF_ERROR(Check("file", "PRAGMA integrity_check(100)", [](const Query& row) {
    return row.Bytes(0) == "ok" ? std::string() : row.Text(0);
  }));
  HONE_RETURN_IF_ERROR(Check("references", "PRAGMA foreign_key_check", [](const Query& row) {
    return fmt::format("{}: row {} names a {} that is missing", row.Bytes(0), row.Int(1),
                       row.Bytes(2));
  }));
  report_.facts = 0;  // only facts count, not the answers of the checks above
  HONE_RETURN_IF_ERROR(Check("workloads", kSelectWorkloads, [](const Query& row) {
    const StoredFact<WorkloadRow> stored = WorkloadOfRow(row);
    return CheckStored(stored, "workload", stored.fact.hash);
  }));
  HONE_RETURN_IF_ERROR(Check("traces", "SELECT hash, text FROM traces",
                             [](const Query& row) { return CheckHashed("trace", row); }));
  HONE_RETURN_IF_ERROR(Check("targets", "SELECT hash, text FROM targets",
                             [](const Query& row) { return CheckHashed("target", row); }));
  HONE_RETURN_IF_ERROR(
      Check("devices", "SELECT id, device_class, fingerprint FROM devices", [](const Query& row) {
        const Device device{.device_class = row.Text(1), .fingerprint = row.Text(2)};
        return DeviceId(device) == row.Hash(0) ? "" : Differs("device", row.Hash(0));
      }));
  HONE_RETURN_IF_ERROR(Check("sessions", kSelectSessions, [](const Query& row) {
    const StoredFact<Session> stored = SessionOfRow(row);
    return CheckStored(stored, "session", stored.fact.id);
  }));
  HONE_RETURN_IF_ERROR(Check("records", kSelectRecords, [](const Query& row) {
    const StoredFact<TuningRecord> stored = RecordOfRow(row);
    return CheckStored(stored, "record", stored.fact.id);
  }));
  HONE_RETURN_IF_ERROR(
      Check("samples", "SELECT record, values_ns, content FROM samples", [](const Query& row) {
        return HashBytes(row.Bytes(1)) == row.Hash(2) ? "" : Differs("samples of", row.Hash(0));
      }));
  HONE_RETURN_IF_ERROR(Check("attempts", kSelectAttempts, [](const Query& row) {
    const StoredFact<Attempt> stored = AttemptOfRow(row);
    return CheckStored(stored, "attempt", stored.fact.id);
  }));
  HONE_ASSIGN_OR_RETURN(const bool has_values, HasValues(connection_));
  if (has_values) {
    HONE_RETURN_IF_ERROR(Check("trace_values", kSelectValues, [](const Query& row) {
      const StoredFact<TraceValues> stored = ValuesOfRow(row);
      return CheckStored(stored, "values of trace", stored.fact.trace);
    }));
  }
  HONE_RETURN_IF_ERROR(Check("events", kSelectEvents, [](const Query& row) {
    const StoredFact<Event> stored = EventOfRow(row);
    return CheckStored(stored, "event", stored.fact.id);
  }));
  HONE_RETURN_IF_ERROR(
      Check("blobs", "SELECT digest, bytes FROM blobs", [](const Query& row) -> std::string {
        const Blob blob{.digest = row.Text(0), .bytes = row.Text(1)};
        return CheckFact(blob).ok() ? "" : "blob " + blob.digest + ": bytes have another SHA-256";
      }));
  return std::move(report_);
}

// kSampleQuantiles values from minimum to maximum, interpolated between neighbours.
std::vector<double> QuantilesOf(std::vector<double> samples_ns) {
  std::sort(samples_ns.begin(), samples_ns.end());
  std::vector<double> quantiles;
  for (int i = 0; i < kSampleQuantiles; ++i) {
    const double place =
        static_cast<double>(samples_ns.size() - 1) * i / static_cast<double>(kSampleQuantiles - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, samples_ns.size() - 1);
    quantiles.push_back(
        std::lerp(samples_ns[below], samples_ns[above], place - static_cast<double>(below)));
  }
  return quantiles;
}

absl::Status FoldSamples(Connection& connection, CompactReport& report) {
  HONE_ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection, "BEGIN IMMEDIATE"));
  std::vector<std::pair<Hash128, std::vector<double>>> folded;
  {
    HONE_ASSIGN_OR_RETURN(Query rows,
                          connection.Run("SELECT record, values_ns, content FROM samples WHERE "
                                         "folded = 0 AND length(values_ns) > ?",
                                         static_cast<int64_t>(kSampleQuantiles * sizeof(double))));
    for (;;) {
      HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
      if (!row) break;
      // Quantiles of damaged samples under a new hash would look sound ever after.
      if (HashBytes(rows.Bytes(1)) != rows.Hash(2)) {
        ++report.damaged_records;
        continue;
      }
      folded.emplace_back(rows.Hash(0), QuantilesOf(DecodeSamples(rows.Bytes(1))));
    }
  }
  for (const auto& [record, quantiles] : folded) {
    const std::string bytes = EncodeSamples(quantiles);
    HONE_RETURN_IF_ERROR(
        connection.Do("UPDATE samples SET folded = 1, values_ns = ?, content = ? WHERE record = ?",
                      Query::BlobBytes{bytes}, HashBytes(bytes), record));
  }
  HONE_RETURN_IF_ERROR(transaction.Commit());
  report.folded_records = static_cast<int64_t>(folded.size());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> SqliteLogFile::Snapshot(const std::string& path) {
  if (reading_) {
    return absl::FailedPreconditionError("no snapshot can be made inside a read scope");
  }
  // Only another snapshot may be replaced: not this log, not somebody's file.
  const absl::StatusOr<LogHeader> there = ReadLogHeader(path);
  if (there.ok() ? there->live : there.status().code() != absl::StatusCode::kNotFound) {
    return absl::FailedPreconditionError(
        fmt::format("a snapshot cannot be written to '{}': a {} is there; name another file", path,
                    there.ok() ? "live log" : "file that is no snapshot"));
  }
  return CopyLog(*connection_, path, CopyFormat::kSnapshot);
}

absl::StatusOr<VerifyReport> SqliteLogFile::Verify() { return Verifier(*connection_).Run(); }

absl::StatusOr<CompactReport> SqliteLogFile::Compact() {
  if (mode_ != OpenMode::kWrite || reading_) {
    return absl::FailedPreconditionError(
        fmt::format("log '{}' can be compacted only by its writer", path()));
  }
  CompactReport report;
  HONE_RETURN_IF_ERROR(connection_->CheckNotOverwritten());
  const LogStamp::Writing writing(*connection_->stamp(), *connection_);
  HONE_RETURN_IF_ERROR(connection_->Do("PRAGMA wal_checkpoint(TRUNCATE)"));
  HONE_ASSIGN_OR_RETURN(report.bytes_before, connection_->FileBytes());
  HONE_RETURN_IF_ERROR(FoldSamples(*connection_, report));
  HONE_RETURN_IF_ERROR(connection_->Execute("VACUUM"));
  HONE_RETURN_IF_ERROR(connection_->Do("PRAGMA wal_checkpoint(TRUNCATE)"));
  HONE_ASSIGN_OR_RETURN(report.bytes_after, connection_->FileBytes());
  return report;
}

}  // namespace hone::db
