#include <optional>
#include <string>
#include <utility>

#include "fmt/core.h"

#include "db/sqlite_log_file.h"
#include "db/sqlite_rows.h"

namespace hone::db {
namespace {

// Puts the facts of one batch into an open transaction.
class Appender {
 public:
  Appender(Connection& connection, Origin origin) : connection_(connection), origin_(origin) {}

  absl::Status AddAll(const Batch& batch);
  Appended Take() { return std::move(appended_); }

 private:
  absl::Status Add(const WorkloadRow& workload);
  absl::Status Add(const Device& device);
  absl::Status Add(const Session& session);
  absl::Status Add(const Blob& blob);
  absl::Status Add(const TuningRecord& record);
  absl::Status Add(const Attempt& attempt);
  absl::Status Add(const TraceValues& values);
  absl::Status Add(const Event& event);

  template <typename T>
  absl::Status AddEach(const std::vector<T>& facts) {
    for (const T& fact : facts) {
      HONE_RETURN_IF_ERROR(CheckFact(fact));
      HONE_RETURN_IF_ERROR(Add(fact));
    }
    return absl::OkStatus();
  }

  /// True when the last insert added its row.
  bool Inserted() const { return sqlite3_changes(connection_.handle()) == 1; }
  bool merged() const { return origin_ == Origin::kMerged; }

  /// Counts a row just inserted, or one that was there: the same fact, or a conflict.
  absl::Status Count(const std::string& kind, const std::string& table, const Hash128& id,
                     const Hash128& content);
  /// A fact that is named by its content.
  void CountNamed() { ++(Inserted() ? appended_.added : appended_.known); }
  /// Says which fact a refused insert was.
  static absl::Status Named(const absl::Status& status, const std::string& kind, const Hash128& id);

  absl::Status AddTrace(const std::string& trace);
  absl::Status AddTarget(const std::string& target);

  Connection& connection_;
  const Origin origin_;
  Appended appended_;
};

absl::Status Appender::AddAll(const Batch& batch) {
  HONE_RETURN_IF_ERROR(AddEach(batch.workloads));
  HONE_RETURN_IF_ERROR(AddEach(batch.devices));
  HONE_RETURN_IF_ERROR(AddEach(batch.sessions));
  HONE_RETURN_IF_ERROR(AddEach(batch.blobs));
  HONE_RETURN_IF_ERROR(AddEach(batch.records));
  HONE_RETURN_IF_ERROR(AddEach(batch.attempts));
  HONE_RETURN_IF_ERROR(AddEach(batch.values));
  HONE_RETURN_IF_ERROR(AddEach(batch.events));
  HONE_ASSIGN_OR_RETURN(appended_.last_sequence,
                        connection_.Number("SELECT max(sequence) FROM events"));
  return absl::OkStatus();
}

absl::Status Appender::Count(const std::string& kind, const std::string& table, const Hash128& id,
                             const Hash128& content) {
  if (Inserted()) {
    ++appended_.added;
    return absl::OkStatus();
  }
  HONE_ASSIGN_OR_RETURN(Query query,
                        connection_.Run("SELECT content FROM " + table + " WHERE id = ?", id));
  HONE_ASSIGN_OR_RETURN(const bool row, query.Next());
  if (row && query.Hash(0) == content) {
    ++appended_.known;
    return absl::OkStatus();
  }
  if (merged()) {
    appended_.conflicts.push_back({.kind = kind, .id = id});
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      fmt::format("log '{}' has a {} {} with other content; nothing of the batch was stored",
                  connection_.path(), kind, id.ToHex()));
}

absl::Status Appender::Named(const absl::Status& status, const std::string& kind,
                             const Hash128& id) {
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  return Annotate(status, fmt::format("{} {} names what the log does not have", kind, id.ToHex()));
}

absl::Status Appender::AddTrace(const std::string& trace) {
  return connection_.Do("INSERT INTO traces VALUES (?, ?) ON CONFLICT (hash) DO NOTHING",
                        TraceHash(trace), trace);
}

absl::Status Appender::AddTarget(const std::string& target) {
  return connection_.Do("INSERT INTO targets VALUES (?, ?, ?) ON CONFLICT (hash) DO NOTHING",
                        HashBytes(target), target, IsaOfTarget(target));
}

absl::Status Appender::Add(const WorkloadRow& workload) {
  HONE_RETURN_IF_ERROR(connection_.Do(
      "INSERT INTO workloads VALUES (?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING", workload.hash,
      workload.text, workload.flop, workload.bytes, ContentHash(workload)));
  CountNamed();
  return absl::OkStatus();
}

absl::Status Appender::Add(const Device& device) {
  HONE_RETURN_IF_ERROR(
      connection_.Do("INSERT INTO devices VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING",
                     DeviceId(device), device.device_class, device.fingerprint));
  CountNamed();
  return absl::OkStatus();
}

absl::Status Appender::Add(const Session& session) {
  const Hash128 content = ContentHash(session);
  HONE_RETURN_IF_ERROR(connection_.Do(
      "INSERT INTO sessions (id, request, seed, versions, created_ms, content, merged) "
      "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
      session.id, session.request, static_cast<int64_t>(session.seed), session.versions,
      session.created_ms, content, merged()));
  return Count("session", "sessions", session.id, content);
}

absl::Status Appender::Add(const Blob& blob) {
  HONE_RETURN_IF_ERROR(
      connection_.Do("INSERT INTO blobs VALUES (?, ?) ON CONFLICT (digest) DO NOTHING", blob.digest,
                     Query::BlobBytes{blob.bytes}));
  CountNamed();
  return absl::OkStatus();
}

absl::Status Appender::Add(const TuningRecord& record) {
  HONE_RETURN_IF_ERROR(AddTrace(record.trace));
  HONE_RETURN_IF_ERROR(AddTarget(record.key.target));
  const Hash128 content = ContentHash(record);
  HONE_RETURN_IF_ERROR(
      Named(connection_.Do(
                "INSERT INTO records (id, workload, target, device, accuracy, policy, trace, "
                "trace_version, builder, rigor, median_ns, low_ns, high_ns, noisy, session, seed, "
                "created_ms, "
                "content, merged) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO NOTHING",
                record.id, record.key.workload, HashBytes(record.key.target), record.device,
                static_cast<int>(record.key.accuracy), record.key.measurement_policy,
                TraceHash(record.trace), record.trace_version, record.builder_version,
                static_cast<int>(record.rigor), record.median_ns, record.low_ns, record.high_ns,
                record.noisy, record.session, static_cast<int64_t>(record.seed), record.created_ms,
                content, merged()),
            "record", record.id));
  const bool inserted = Inserted();
  HONE_RETURN_IF_ERROR(Count("record", "records", record.id, content));
  if (!inserted || record.samples_ns.empty()) return absl::OkStatus();
  const std::string samples = EncodeSamples(record.samples_ns);
  return connection_.Do("INSERT INTO samples VALUES (?, 0, ?, ?)", record.id,
                        Query::BlobBytes{samples}, HashBytes(samples));
}

absl::Status Appender::Add(const Attempt& attempt) {
  HONE_RETURN_IF_ERROR(AddTrace(attempt.trace));
  HONE_RETURN_IF_ERROR(AddTarget(attempt.key.target));
  const Hash128 content = ContentHash(attempt);
  const std::optional<Hash128> record =
      attempt.record == Hash128{} ? std::nullopt : std::optional(attempt.record);
  HONE_RETURN_IF_ERROR(Named(
      connection_.Do(
          "INSERT INTO attempts (id, session, workload, target, device, accuracy, policy, trace, "
          "proposer, outcome, message, record, cost_ns, created_ms, content, merged) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
          attempt.id, attempt.session, attempt.key.workload, HashBytes(attempt.key.target),
          attempt.device, static_cast<int>(attempt.key.accuracy), attempt.key.measurement_policy,
          TraceHash(attempt.trace), attempt.proposer, static_cast<int>(attempt.outcome),
          attempt.message, record, attempt.cost_ns, attempt.created_ms, content, merged()),
      "attempt", attempt.id));
  return Count("attempt", "attempts", attempt.id, content);
}

absl::Status Appender::Add(const TraceValues& values) {
  HONE_RETURN_IF_ERROR(Named(
      connection_.Do("INSERT INTO trace_values (workload, target, trace, text, content) "
                     "VALUES (?, ?, ?, ?, ?) ON CONFLICT (workload, target, trace) DO NOTHING",
                     values.workload, HashBytes(values.target), values.trace, values.text,
                     ContentHash(values)),
      "values of trace", values.trace));
  CountNamed();
  return absl::OkStatus();
}

absl::Status Appender::Add(const Event& event) {
  const Hash128 content = ContentHash(event);
  const std::optional<Hash128> session =
      event.session == Hash128{} ? std::nullopt : std::optional(event.session);
  HONE_RETURN_IF_ERROR(
      Named(connection_.Do("INSERT INTO events (id, session, type, payload, content, merged) "
                           "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
                           event.id, session, event.type, Query::BlobBytes{event.payload}, content,
                           merged()),
            "event", event.id));
  return Count("event", "events", event.id, content);
}

}  // namespace

absl::StatusOr<Appended> SqliteLogFile::AppendInTransaction(const Batch& batch, Origin origin) {
  Appender appender(*connection_, origin);
  HONE_RETURN_IF_ERROR(appender.AddAll(batch));
  return appender.Take();
}

absl::StatusOr<Appended> SqliteLogFile::Append(const Batch& batch, Origin origin) {
  if (mode_ != OpenMode::kWrite || reading_) {
    return absl::FailedPreconditionError(fmt::format(
        "log '{}' cannot be added to: {}", path(),
        reading_ ? "it is being read in a scope of its own" : "it was opened for reading"));
  }
  HONE_ASSIGN_OR_RETURN(Transaction transaction,
                        Transaction::Begin(*connection_, "BEGIN IMMEDIATE"));
  HONE_ASSIGN_OR_RETURN(Appended appended, AppendInTransaction(batch, origin));
  HONE_RETURN_IF_ERROR(transaction.Commit());
  return appended;
}

}  // namespace hone::db
