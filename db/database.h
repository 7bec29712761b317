#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "db/model_verdict.h"
#include "db/record.h"

namespace hone::db {

/// Where the facts of a batch come from.
enum class Origin : uint8_t {
  kHere = 0,    ///< measured by the writer of this log
  kMerged = 1,  ///< of another log: records count as screened
};

/// A fact whose id the log has with other content.
struct Conflict {
  std::string kind;  ///< "record", "attempt", …
  Hash128 id;

  bool operator==(const Conflict&) const = default;
};

/// What an Append did. A fact that the log has already, with the same content, is not added again.
struct Appended {
  int64_t added = 0;
  int64_t known = 0;
  int64_t last_sequence = 0;        ///< of the log's events, after this batch
  std::vector<Conflict> conflicts;  ///< not stored; only for Origin::kMerged
};

/// Which records answer, and what lowers their rigor.
struct RecordQuery {
  RecordKey key;
  /// The builder in use; records of another count as screened. Empty: all builders count alike.
  std::string builder_version;
};

/// A record as this log ranks it.
struct RankedRecord {
  TuningRecord record;
  Hash128 content;  ///< ContentHash(record)
  bool merged = false;
  bool other_builder = false;      ///< made with another builder version than the query's
  Rigor rigor = Rigor::kScreened;  ///< what it counts as: screened if merged or other_builder

  bool operator==(const RankedRecord&) const = default;
};

/// A session, and whether it ran elsewhere.
struct StoredSession {
  Session session;
  bool merged = false;
  bool operator==(const StoredSession&) const = default;
};

/// Narrows a scan; what is unset does not narrow.
struct FactFilter {
  std::optional<Hash128> session;
  std::optional<Hash128> workload;
  std::optional<std::string> device_class;
  int64_t after_sequence = 0;  ///< events: only later ones
  bool local_only = false;     ///< not what was merged from other logs
};

/// What the log holds.
struct LogStats {
  int64_t workloads = 0;
  int64_t traces = 0;
  int64_t devices = 0;
  int64_t sessions = 0;
  int64_t attempts = 0;
  int64_t records = 0;
  int64_t merged_records = 0;
  int64_t events = 0;
  int64_t blobs = 0;
  std::array<int64_t, kNumRigors> by_rigor{};               ///< as measured
  std::array<int64_t, measure::kNumOutcomes> by_outcome{};  ///< of attempts
  int64_t file_bytes = 0;  ///< main file, without what stands in its WAL; 0 in memory

  bool operator==(const LogStats&) const = default;
};

/// The log: an append-only set of facts. Facts are read in the order in which they were appended.
/// One thread at a time. Every implementation passes tests/db/database_conformance_test.cc.
///
/// Errors: kUnavailable busy; kDataLoss damaged; kResourceExhausted disk full; kPermissionDenied
/// not writable; kFailedPrecondition opened for reading; kAlreadyExists an id with other content;
/// kInvalidArgument a fact that CheckFact refuses or that names what the log does not have.
class Database {
 public:
  virtual ~Database() = default;

  /// All or nothing, and durable (through a power cut) when it returns; so many facts in a batch
  /// cost one sync. Facts may name others of the same batch. Appending the same batch again adds
  /// nothing. A conflict refuses the whole batch; in a merged one only that fact.
  virtual absl::StatusOr<Appended> Append(const Batch& batch, Origin origin = Origin::kHere) = 0;

  /// While the returned object lives, all reads see one state. One at a time; no Append meanwhile.
  /// Keep it short: a log cannot fold in its newest rows while it is read.
  class ReadScope {
   public:
    virtual ~ReadScope() = default;
  };
  virtual absl::StatusOr<std::unique_ptr<ReadScope>> BeginRead() = 0;

  /// The best records of a key, at most `limit`, each Trace once (by its best record). A record of
  /// a stricter accuracy class serves. Order: rigor (falling), low_ns, id. Without samples.
  virtual absl::StatusOr<std::vector<RankedRecord>> TopRecords(const RecordQuery& query,
                                                               int limit) = 0;
  absl::StatusOr<std::optional<RankedRecord>> BestRecord(const RecordQuery& query);

  /// The best record for each (target, device class) other than the key's own that has the target's
  /// ISA (the target text up to ",threads="), same workload. Same order, without samples.
  virtual absl::StatusOr<std::vector<RankedRecord>> SameIsaRecords(const RecordQuery& query) = 0;

  /// Workloads that have a record whose target has this ISA ("cpu:avx512+vnni"), measured under
  /// this policy; by hash.
  virtual absl::StatusOr<std::vector<WorkloadRow>> MeasuredWorkloads(const std::string& isa,
                                                                     int measurement_policy) = 0;

  /// The verdicts of a model, the newest first.
  virtual absl::StatusOr<std::vector<ModelVerdict>> ModelVerdicts(const Hash128& model) = 0;

  virtual absl::StatusOr<std::optional<WorkloadRow>> FindWorkload(const Hash128& hash) = 0;
  /// With samples.
  virtual absl::StatusOr<std::optional<RankedRecord>> FindRecord(const Hash128& id) = 0;
  virtual absl::StatusOr<std::optional<Session>> FindSession(const Hash128& id) = 0;
  virtual absl::StatusOr<std::optional<std::string>> FindBlob(const std::string& digest) = 0;

  /// Everything, in the order appended (workloads, devices and blobs: by id). A callback's error
  /// ends the scan and is returned; callbacks must not use the database.
  template <typename T>
  using Visit = std::function<absl::Status(const T&)>;
  virtual absl::Status ScanWorkloads(const Visit<WorkloadRow>& visit) = 0;
  virtual absl::Status ScanDevices(const Visit<Device>& visit) = 0;
  virtual absl::Status ScanSessions(const Visit<StoredSession>& visit) = 0;
  virtual absl::Status ScanBlobs(const Visit<Blob>& visit) = 0;
  /// Rigor is as measured but for merged records; with samples.
  virtual absl::Status ScanRecords(const FactFilter& filter, const Visit<RankedRecord>& visit) = 0;
  virtual absl::Status ScanAttempts(const FactFilter& filter, const Visit<Attempt>& visit) = 0;
  /// Those of the filter's Workload, else all; none where the log is of a schema without them.
  virtual absl::Status ScanValues(const FactFilter& filter, const Visit<TraceValues>& visit) = 0;
  virtual absl::Status ScanEvents(const FactFilter& filter, const Visit<Event>& visit) = 0;

  /// The scan as a list: what a restarted Tuner replays.
  absl::StatusOr<std::vector<Event>> EventsOf(const Hash128& session, int64_t after_sequence = 0);
  absl::StatusOr<std::vector<StoredSession>> Sessions();

  virtual absl::StatusOr<LogStats> Stats() = 0;
};

/// The target text up to its threads: "cpu:avx512+vnni" of "cpu:avx512+vnni,threads=2".
std::string IsaOfTarget(const std::string& target);

/// What a record counts as for a query.
Rigor EffectiveRigor(const TuningRecord& record, bool merged, bool other_builder);

/// The order of look-ups: true when `a` answers rather than `b`.
bool RanksBefore(const RankedRecord& a, const RankedRecord& b);

}  // namespace hone::db
