#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fmt/core.h"

#include "db/sqlite_log_file.h"
#include "db/sqlite_rows.h"

namespace hone::db {
namespace {

// Whether a record counts as screened whatever it was; the parameter is the query's builder
// version.
constexpr char kForeign[] = "(r.merged = 1 OR (?1 <> '' AND r.builder <> ?1))";

// RanksBefore as an ORDER BY.
std::string RankOrder() {
  return fmt::format(
      "CASE WHEN r.rigor = {} THEN -1 WHEN {} THEN 0 ELSE r.rigor END DESC, r.low_ns, r.id",
      static_cast<int>(Rigor::kPredicted), kForeign);
}

// The records of one workload that `condition` lets through, best first: their number in the log,
// the two columns by which they are grouped, id and whether merged. Touches no Trace: most records
// of a key are never shown.
std::string RankedNumbers(const std::string& condition, const std::string& group) {
  return fmt::format(
      "SELECT r.sequence, {}, r.id, r.merged FROM records r JOIN targets t ON t.hash = r.target "
      "JOIN devices d ON d.id = r.device "
      "WHERE r.workload = ?2 AND r.policy = ?3 AND r.accuracy <= ?4 AND {} ORDER BY {}",
      group, condition, RankOrder());
}

}  // namespace

absl::StatusOr<ReplacedRecords> SqliteLogFile::ReplacedOf(const Hash128& workload) {
  static const std::string kSql =
      std::string(kSelectEvents) + "WHERE e.id BETWEEN ? AND ? AND e.type = ?";
  const auto [first, last] = RecheckIds(workload);
  HONE_ASSIGN_OR_RETURN(Query rows, connection_->Run(kSql, first, last, std::string(kRecheck)));
  ReplacedRecords replaced;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return replaced;
    const StoredFact<Event> stored = EventOfRow(rows);
    HONE_RETURN_IF_ERROR(CheckContent(stored, "event", stored.fact.id, path()));
    const std::optional<Recheck> recheck = RecheckOf(stored.fact, stored.merged);
    if (recheck && recheck->workload == workload) replaced.Add(*recheck);
  }
}

absl::StatusOr<std::vector<RankedRecord>> SqliteLogFile::BestOfGroups(Query ranked,
                                                                      const RecordQuery& asked,
                                                                      size_t limit) {
  HONE_ASSIGN_OR_RETURN(const ReplacedRecords replaced, ReplacedOf(asked.key.workload));
  std::set<std::string> seen;
  std::vector<int64_t> numbers;
  while (numbers.size() < limit) {
    HONE_ASSIGN_OR_RETURN(const bool row, ranked.Next());
    if (!row) break;
    if (replaced.Contains(ranked.Hash(3), ranked.Int(4) != 0)) continue;
    std::string group(ranked.Bytes(1));
    group += ranked.Bytes(2);
    if (seen.insert(std::move(group)).second) numbers.push_back(ranked.Int(0));
  }
  static const std::string kSql = std::string(kSelectRecords) + "WHERE r.sequence = ?";
  std::vector<RankedRecord> records;
  for (const int64_t number : numbers) {
    HONE_ASSIGN_OR_RETURN(Query rows, connection_->Run(kSql, number));
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) {
      return absl::DataLossError(fmt::format(
          "log '{}' is damaged: record number {} names what is not there; `hone db verify` lists "
          "all such facts, `hone db merge NEW_LOG {}` saves the others",
          path(), number, path()));
    }
    HONE_ASSIGN_OR_RETURN(RankedRecord record,
                          RankedRecordOfRow(rows, asked.builder_version, path()));
    records.push_back(std::move(record));
  }
  return records;
}

absl::StatusOr<std::vector<RankedRecord>> SqliteLogFile::TopRecords(const RecordQuery& query,
                                                                    int limit) {
  static const std::string kSql =
      RankedNumbers("r.target = (SELECT hash FROM targets WHERE text = ?5) AND d.device_class = ?6",
                    "r.trace, ''");
  HONE_ASSIGN_OR_RETURN(
      Query ranked,
      connection_->Run(kSql, query.builder_version, query.key.workload,
                       query.key.measurement_policy, static_cast<int>(query.key.accuracy),
                       query.key.target, query.key.device_class));
  return BestOfGroups(std::move(ranked), query, static_cast<size_t>(std::max(limit, 0)));
}

absl::StatusOr<std::vector<RankedRecord>> SqliteLogFile::SameIsaRecords(const RecordQuery& query) {
  static const std::string kSql = RankedNumbers(
      "t.isa = ?7 AND NOT (t.text = ?5 AND d.device_class = ?6)", "r.target, d.device_class");
  HONE_ASSIGN_OR_RETURN(
      Query ranked,
      connection_->Run(kSql, query.builder_version, query.key.workload,
                       query.key.measurement_policy, static_cast<int>(query.key.accuracy),
                       query.key.target, query.key.device_class, IsaOfTarget(query.key.target)));
  return BestOfGroups(std::move(ranked), query, std::numeric_limits<size_t>::max());
}

absl::StatusOr<std::vector<WorkloadRow>> SqliteLogFile::MeasuredWorkloads(const std::string& isa,
                                                                          int measurement_policy) {
  static const std::string kSql =
      std::string(kSelectWorkloads) +
      "WHERE EXISTS (SELECT 1 FROM records r JOIN targets t ON t.hash = r.target "
      "WHERE r.workload = w.hash AND r.policy = ? AND t.isa = ?) ORDER BY w.hash";
  HONE_ASSIGN_OR_RETURN(Query rows, connection_->Run(kSql, measurement_policy, isa));
  std::vector<WorkloadRow> workloads;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return workloads;
    StoredFact<WorkloadRow> stored = WorkloadOfRow(rows);
    HONE_RETURN_IF_ERROR(CheckContent(stored, "workload", stored.fact.hash, path()));
    workloads.push_back(std::move(stored.fact));
  }
}

absl::StatusOr<std::vector<ModelVerdict>> SqliteLogFile::ModelVerdicts(const Hash128& model) {
  static const std::string kSql =
      std::string(kSelectEvents) + "WHERE e.id BETWEEN ? AND ? ORDER BY e.sequence DESC";
  const auto [first, last] = VerdictIds(model);
  HONE_ASSIGN_OR_RETURN(Query rows, connection_->Run(kSql, first, last));
  std::vector<ModelVerdict> verdicts;
  for (;;) {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
    if (!row) return verdicts;
    const StoredFact<Event> stored = EventOfRow(rows);
    HONE_RETURN_IF_ERROR(CheckContent(stored, "event", stored.fact.id, path()));
    std::optional<ModelVerdict> verdict = VerdictOf(stored.fact, stored.merged);
    if (verdict && verdict->model == model) verdicts.push_back(*std::move(verdict));
  }
}

absl::StatusOr<std::optional<WorkloadRow>> SqliteLogFile::FindWorkload(const Hash128& hash) {
  HONE_ASSIGN_OR_RETURN(Query rows,
                        connection_->Run(std::string(kSelectWorkloads) + "WHERE w.hash = ?", hash));
  HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
  if (!row) return std::optional<WorkloadRow>();
  StoredFact<WorkloadRow> stored = WorkloadOfRow(rows);
  HONE_RETURN_IF_ERROR(CheckContent(stored, "workload", stored.fact.hash, path()));
  return std::optional<WorkloadRow>(std::move(stored.fact));
}

absl::StatusOr<std::optional<RankedRecord>> SqliteLogFile::FindRecord(const Hash128& id) {
  HONE_ASSIGN_OR_RETURN(Query rows,
                        connection_->Run(std::string(kSelectRecords) + "WHERE r.id = ?", id));
  HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
  if (!row) return std::optional<RankedRecord>();
  HONE_ASSIGN_OR_RETURN(RankedRecord ranked, RankedRecordOfRow(rows, "", path()));
  HONE_RETURN_IF_ERROR(ReadSamples(ranked.record));
  return std::optional<RankedRecord>(std::move(ranked));
}

absl::Status SqliteLogFile::ReadSamples(TuningRecord& record) {
  HONE_ASSIGN_OR_RETURN(
      Query samples,
      connection_->Run("SELECT values_ns, content FROM samples WHERE record = ?", record.id));
  HONE_ASSIGN_OR_RETURN(const bool any, samples.Next());
  if (!any) return absl::OkStatus();
  if (HashBytes(samples.Bytes(0)) != samples.Hash(1)) {
    return DamagedFact("samples of record", record.id, path());
  }
  record.samples_ns = DecodeSamples(samples.Bytes(0));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Session>> SqliteLogFile::FindSession(const Hash128& id) {
  HONE_ASSIGN_OR_RETURN(Query rows,
                        connection_->Run(std::string(kSelectSessions) + "WHERE s.id = ?", id));
  HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
  if (!row) return std::optional<Session>();
  StoredFact<Session> stored = SessionOfRow(rows);
  HONE_RETURN_IF_ERROR(CheckContent(stored, "session", stored.fact.id, path()));
  return std::optional<Session>(std::move(stored.fact));
}

absl::StatusOr<std::optional<std::string>> SqliteLogFile::FindBlob(const std::string& digest) {
  HONE_ASSIGN_OR_RETURN(Query rows,
                        connection_->Run("SELECT bytes FROM blobs WHERE digest = ?", digest));
  HONE_ASSIGN_OR_RETURN(const bool row, rows.Next());
  if (!row) return std::optional<std::string>();
  Blob blob{.digest = digest, .bytes = rows.Text(0)};
  if (!CheckFact(blob).ok()) {
    return absl::DataLossError(
        fmt::format("log '{}' is damaged: blob {} has another SHA-256", path(), digest));
  }
  return std::optional<std::string>(std::move(blob.bytes));
}

}  // namespace hone::db
