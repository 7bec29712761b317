#include "db/sqlite_rows.h"

#include <bit>
#include <cstring>
#include <utility>

#include "fmt/core.h"

namespace hone::db {

const char kSelectRecords[] =
    "SELECT r.id, r.workload, t.text, d.device_class, r.accuracy, r.policy, r.device, x.text, "
    "r.trace_version, r.builder, r.rigor, r.median_ns, r.low_ns, r.high_ns, r.session, r.seed, "
    "r.created_ms, r.content, r.merged, r.noisy, r.sequence "
    "FROM records r JOIN targets t ON t.hash = r.target JOIN devices d ON d.id = r.device "
    "JOIN traces x ON x.hash = r.trace ";

const char kSelectAttempts[] =
    "SELECT a.id, a.workload, t.text, d.device_class, a.accuracy, a.policy, a.device, x.text, "
    "a.session, a.proposer, a.outcome, a.message, a.record, a.cost_ns, a.created_ms, a.content, "
    "a.merged, a.sequence "
    "FROM attempts a JOIN targets t ON t.hash = a.target JOIN devices d ON d.id = a.device "
    "JOIN traces x ON x.hash = a.trace ";

const char kSelectValues[] =
    "SELECT v.workload, t.text, v.trace, v.text, v.content, v.sequence "
    "FROM trace_values v JOIN targets t ON t.hash = v.target ";

const char kSelectEvents[] =
    "SELECT e.id, e.session, e.type, e.payload, e.sequence, e.content, e.merged FROM events e ";

const char kSelectSessions[] =
    "SELECT s.id, s.request, s.seed, s.versions, s.created_ms, s.content, s.merged, s.sequence "
    "FROM sessions s ";

const char kSelectWorkloads[] =
    "SELECT w.hash, w.text, w.flop, w.bytes, w.content, w.rowid FROM workloads w ";

namespace {

// A number of an enum with `count` values; a damaged one becomes the first and is found by its
// hash.
template <typename T>
T EnumOf(int64_t number, int count) {
  return number >= 0 && number < count ? static_cast<T>(number) : T{};
}

// Columns 1 to 5 of records and attempts.
RecordKey KeyOfRow(const Query& row) {
  return {.workload = row.Hash(1),
          .target = row.Text(2),
          .device_class = row.Text(3),
          .accuracy = EnumOf<ir::AccuracyClass>(row.Int(4), ir::kNumAccuracyClasses),
          .measurement_policy = static_cast<int>(row.Int(5))};
}

}  // namespace

StoredFact<TuningRecord> RecordOfRow(const Query& row) {
  StoredFact<TuningRecord> stored;
  TuningRecord& record = stored.fact;
  record.id = row.Hash(0);
  record.key = KeyOfRow(row);
  record.device = row.Hash(6);
  record.trace = row.Text(7);
  record.trace_version = static_cast<int>(row.Int(8));
  record.builder_version = row.Text(9);
  record.rigor = EnumOf<Rigor>(row.Int(10), kNumRigors);
  record.median_ns = row.Real(11);
  record.low_ns = row.Real(12);
  record.high_ns = row.Real(13);
  record.session = row.Hash(14);
  record.seed = static_cast<uint64_t>(row.Int(15));
  record.created_ms = row.Int(16);
  stored.content = row.Hash(17);
  stored.merged = row.Int(18) != 0;
  record.noisy = row.Int(19) != 0;
  return stored;
}

StoredFact<Attempt> AttemptOfRow(const Query& row) {
  StoredFact<Attempt> stored;
  Attempt& attempt = stored.fact;
  attempt.id = row.Hash(0);
  attempt.key = KeyOfRow(row);
  attempt.device = row.Hash(6);
  attempt.trace = row.Text(7);
  attempt.session = row.Hash(8);
  attempt.proposer = row.Text(9);
  attempt.outcome = EnumOf<Outcome>(row.Int(10), measure::kNumOutcomes);
  attempt.message = row.Text(11);
  attempt.record = row.Hash(12);
  attempt.cost_ns = row.Int(13);
  attempt.created_ms = row.Int(14);
  stored.content = row.Hash(15);
  stored.merged = row.Int(16) != 0;
  return stored;
}

StoredFact<TraceValues> ValuesOfRow(const Query& row) {
  StoredFact<TraceValues> stored;
  stored.fact = {
      .workload = row.Hash(0), .target = row.Text(1), .trace = row.Hash(2), .text = row.Text(3)};
  stored.content = row.Hash(4);
  return stored;
}

absl::StatusOr<bool> HasValues(Connection& connection) {
  HONE_ASSIGN_OR_RETURN(
      const int64_t tables,
      connection.Number("SELECT count(*) FROM sqlite_schema WHERE name = 'trace_values'"));
  return tables > 0;
}

StoredFact<Event> EventOfRow(const Query& row) {
  StoredFact<Event> stored;
  stored.fact = {.id = row.Hash(0),
                 .session = row.Hash(1),
                 .type = row.Text(2),
                 .payload = row.Text(3),
                 .sequence = row.Int(4)};
  stored.content = row.Hash(5);
  stored.merged = row.Int(6) != 0;
  return stored;
}

StoredFact<Session> SessionOfRow(const Query& row) {
  StoredFact<Session> stored;
  stored.fact = {.id = row.Hash(0),
                 .request = row.Text(1),
                 .seed = static_cast<uint64_t>(row.Int(2)),
                 .versions = row.Text(3),
                 .created_ms = row.Int(4)};
  stored.content = row.Hash(5);
  stored.merged = row.Int(6) != 0;
  return stored;
}

StoredFact<WorkloadRow> WorkloadOfRow(const Query& row) {
  StoredFact<WorkloadRow> stored;
  stored.fact = {.hash = row.Hash(0), .text = row.Text(1), .flop = row.Int(2), .bytes = row.Int(3)};
  stored.content = row.Hash(4);
  return stored;
}

absl::Status DamagedFact(const std::string& kind, const Hash128& id, const std::string& path) {
  return absl::DataLossError(fmt::format(
      "log '{}' is damaged: {} {} is not what was written; `hone db verify` lists all such facts, "
      "`hone db merge NEW_LOG {}` saves the others",
      path, kind, id.ToHex(), path));
}

absl::StatusOr<RankedRecord> RankedRecordOfRow(const Query& row, const std::string& builder_version,
                                               const std::string& path) {
  StoredFact<TuningRecord> stored = RecordOfRow(row);
  HONE_RETURN_IF_ERROR(CheckContent(stored, "record", stored.fact.id, path));
  RankedRecord ranked;
  ranked.content = stored.content;
  ranked.merged = stored.merged;
  ranked.other_builder = !builder_version.empty() && stored.fact.builder_version != builder_version;
  ranked.rigor = EffectiveRigor(stored.fact, ranked.merged, ranked.other_builder);
  ranked.record = std::move(stored.fact);
  return ranked;
}

std::string EncodeSamples(const std::vector<double>& samples_ns) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(samples_ns.size() * sizeof(double), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), samples_ns.data(), bytes.size());
  return bytes;
}

std::vector<double> DecodeSamples(std::string_view bytes) {
  std::vector<double> samples_ns(bytes.size() / sizeof(double));
  if (!samples_ns.empty()) {
    std::memcpy(samples_ns.data(), bytes.data(), samples_ns.size() * sizeof(double));
  }
  return samples_ns;
}

}  // namespace hone::db
