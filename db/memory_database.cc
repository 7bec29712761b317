#include "db/memory_database.h"

#include <algorithm>
#include <set>

#include "fmt/core.h"

#include "base/status.h"
#include "db/recheck.h"

namespace hone::db {
namespace {

class MemoryReadScope final : public Database::ReadScope {
 public:
  explicit MemoryReadScope(bool* reading) : reading_(reading) { *reading_ = true; }
  ~MemoryReadScope() override { *reading_ = false; }

 private:
  bool* reading_;
};

RankedRecord Rank(const TuningRecord& record, bool merged, const std::string& builder_version) {
  RankedRecord ranked{.record = record, .content = ContentHash(record), .merged = merged};
  ranked.other_builder = !builder_version.empty() && record.builder_version != builder_version;
  ranked.rigor = EffectiveRigor(record, merged, ranked.other_builder);
  return ranked;
}

RankedRecord WithoutSamples(RankedRecord ranked) {
  ranked.record.samples_ns.clear();
  return ranked;
}

// Whether a record answers a query whatever its target and device class.
bool AnswersKey(const TuningRecord& record, const RecordKey& key) {
  return record.key.workload == key.workload && record.key.accuracy <= key.accuracy &&
         record.key.measurement_policy == key.measurement_policy;
}

bool Admits(const FactFilter& filter, const RecordKey& key, const Hash128& session, bool merged) {
  return (!filter.session || session == *filter.session) &&
         (!filter.workload || key.workload == *filter.workload) &&
         (!filter.device_class || key.device_class == *filter.device_class) &&
         (!filter.local_only || !merged);
}

}  // namespace

template <typename T>
absl::Status MemoryDatabase::AddFact(const T& fact, const std::string& kind, Origin origin,
                                     std::vector<Row<T>>& rows, Appended& appended) {
  const auto known = std::find_if(rows.begin(), rows.end(),
                                  [&](const Row<T>& row) { return row.fact.id == fact.id; });
  if (known == rows.end()) {
    rows.push_back({.fact = fact, .merged = origin == Origin::kMerged});
    ++appended.added;
  } else if (ContentHash(known->fact) == ContentHash(fact)) {
    ++appended.known;
  } else if (origin == Origin::kMerged) {
    appended.conflicts.push_back({.kind = kind, .id = fact.id});
  } else {
    return absl::AlreadyExistsError(
        fmt::format("the log has a {} {} with other content; nothing of the batch was stored", kind,
                    fact.id.ToHex()));
  }
  return absl::OkStatus();
}

absl::Status MemoryDatabase::CheckReferences(const Facts& facts, const std::string& what,
                                             const RecordKey& key, const Hash128& device,
                                             const Hash128& session) {
  const bool has_session =
      std::any_of(facts.sessions.begin(), facts.sessions.end(),
                  [&](const Row<Session>& row) { return row.fact.id == session; });
  if (has_session && facts.workloads.contains(key.workload) && facts.devices.contains(device)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(what + " names what the log does not have");
}

absl::StatusOr<bool> MemoryDatabase::AddValues(const TraceValues& values, Facts& facts) {
  const auto is_of = [&](const auto& row) {
    return row.fact.key.workload == values.workload && row.fact.key.target == values.target &&
           TraceHash(row.fact.trace) == values.trace;
  };
  if (!std::any_of(facts.records.begin(), facts.records.end(), is_of) &&
      !std::any_of(facts.attempts.begin(), facts.attempts.end(), is_of))
    return absl::InvalidArgumentError("values of trace " + values.trace.ToHex() +
                                      " name what the log does not have");
  for (const TraceValues& known : facts.values) {
    if (known.workload == values.workload && known.target == values.target &&
        known.trace == values.trace)
      return false;
  }
  facts.values.push_back(values);
  return true;
}

absl::Status MemoryDatabase::AddAll(const Batch& batch, Origin origin, Facts& facts,
                                    Appended& appended) {
  const auto count = [&](bool added) { ++(added ? appended.added : appended.known); };
  for (const WorkloadRow& workload : batch.workloads) {
    HONE_RETURN_IF_ERROR(CheckFact(workload));
    count(facts.workloads.emplace(workload.hash, workload).second);
  }
  for (const Device& device : batch.devices) {
    HONE_RETURN_IF_ERROR(CheckFact(device));
    count(facts.devices.emplace(DeviceId(device), device).second);
  }
  for (const Session& session : batch.sessions) {
    HONE_RETURN_IF_ERROR(CheckFact(session));
    HONE_RETURN_IF_ERROR(AddFact(session, "session", origin, facts.sessions, appended));
  }
  for (const Blob& blob : batch.blobs) {
    HONE_RETURN_IF_ERROR(CheckFact(blob));
    count(facts.blobs.emplace(blob.digest, blob.bytes).second);
  }
  for (const TuningRecord& record : batch.records) {
    HONE_RETURN_IF_ERROR(CheckFact(record));
    HONE_RETURN_IF_ERROR(CheckReferences(facts, "record " + record.id.ToHex(), record.key,
                                         record.device, record.session));
    HONE_RETURN_IF_ERROR(AddFact(record, "record", origin, facts.records, appended));
  }
  for (const Attempt& attempt : batch.attempts) {
    HONE_RETURN_IF_ERROR(CheckFact(attempt));
    const std::string what = "attempt " + attempt.id.ToHex();
    HONE_RETURN_IF_ERROR(
        CheckReferences(facts, what, attempt.key, attempt.device, attempt.session));
    const bool has_record =
        attempt.record == Hash128{} ||
        std::any_of(facts.records.begin(), facts.records.end(),
                    [&](const auto& row) { return row.fact.id == attempt.record; });
    if (!has_record) return absl::InvalidArgumentError(what + " names what the log does not have");
    HONE_RETURN_IF_ERROR(AddFact(attempt, "attempt", origin, facts.attempts, appended));
  }
  for (const TraceValues& values : batch.values) {
    HONE_RETURN_IF_ERROR(CheckFact(values));
    HONE_ASSIGN_OR_RETURN(const bool added, AddValues(values, facts));
    count(added);
  }
  for (Event event : batch.events) {
    HONE_RETURN_IF_ERROR(CheckFact(event));
    const bool has_session =
        event.session == Hash128{} ||
        std::any_of(facts.sessions.begin(), facts.sessions.end(),
                    [&](const auto& row) { return row.fact.id == event.session; });
    if (!has_session) {
      return absl::InvalidArgumentError("event " + event.id.ToHex() +
                                        " names what the log does not have");
    }
    event.sequence = static_cast<int64_t>(facts.events.size()) + 1;
    HONE_RETURN_IF_ERROR(AddFact(event, "event", origin, facts.events, appended));
  }
  return absl::OkStatus();
}

absl::StatusOr<Appended> MemoryDatabase::Append(const Batch& batch, Origin origin) {
  if (reading_) return absl::FailedPreconditionError("the log is being read in a scope of its own");
  Facts facts = facts_;
  Appended appended;
  HONE_RETURN_IF_ERROR(AddAll(batch, origin, facts, appended));
  facts_ = std::move(facts);
  appended.last_sequence = static_cast<int64_t>(facts_.events.size());
  return appended;
}

absl::StatusOr<std::unique_ptr<Database::ReadScope>> MemoryDatabase::BeginRead() {
  if (reading_) return absl::FailedPreconditionError("a read scope of this log is open already");
  return std::unique_ptr<ReadScope>(std::make_unique<MemoryReadScope>(&reading_));
}

template <typename Admits, typename GroupOf>
std::vector<RankedRecord> MemoryDatabase::BestOfGroups(const RecordQuery& query, Admits admits,
                                                       GroupOf group_of) const {
  ReplacedRecords replaced;
  for (const auto& [event, merged] : facts_.events) {
    if (const auto recheck = RecheckOf(event, merged)) replaced.Add(*recheck);
  }
  std::vector<RankedRecord> ranked;
  for (const Row<TuningRecord>& row : facts_.records) {
    if (!AnswersKey(row.fact, query.key) || !admits(row.fact.key)) continue;
    if (replaced.Contains(row.fact.id, row.merged)) continue;
    ranked.push_back(WithoutSamples(Rank(row.fact, row.merged, query.builder_version)));
  }
  std::sort(ranked.begin(), ranked.end(), RanksBefore);
  std::set<std::string> seen;
  std::erase_if(ranked, [&](const RankedRecord& record) {
    return !seen.insert(group_of(record.record)).second;
  });
  return ranked;
}

absl::StatusOr<std::vector<RankedRecord>> MemoryDatabase::TopRecords(const RecordQuery& query,
                                                                     int limit) {
  std::vector<RankedRecord> top = BestOfGroups(
      query,
      [&](const RecordKey& key) {
        return key.target == query.key.target && key.device_class == query.key.device_class;
      },
      [](const TuningRecord& record) { return record.trace; });
  if (top.size() > static_cast<size_t>(limit)) top.resize(static_cast<size_t>(limit));
  return top;
}

absl::StatusOr<std::vector<RankedRecord>> MemoryDatabase::SameIsaRecords(const RecordQuery& query) {
  return BestOfGroups(
      query,
      [&](const RecordKey& key) {
        return IsaOfTarget(key.target) == IsaOfTarget(query.key.target) &&
               (key.target != query.key.target || key.device_class != query.key.device_class);
      },
      [](const TuningRecord& record) {
        return record.key.target + '\n' + record.key.device_class;
      });
}

absl::StatusOr<std::vector<WorkloadRow>> MemoryDatabase::MeasuredWorkloads(const std::string& isa,
                                                                           int measurement_policy) {
  std::set<Hash128> measured;
  for (const auto& [record, merged] : facts_.records) {
    if (record.key.measurement_policy == measurement_policy &&
        IsaOfTarget(record.key.target) == isa) {
      measured.insert(record.key.workload);
    }
  }
  std::vector<WorkloadRow> workloads;
  for (const Hash128& hash : measured) workloads.push_back(facts_.workloads.at(hash));
  return workloads;
}

absl::StatusOr<std::vector<ModelVerdict>> MemoryDatabase::ModelVerdicts(const Hash128& model) {
  std::vector<ModelVerdict> verdicts;
  for (const auto& [event, merged] : facts_.events) {
    std::optional<ModelVerdict> verdict = VerdictOf(event, merged);
    if (verdict && verdict->model == model) verdicts.insert(verdicts.begin(), *std::move(verdict));
  }
  return verdicts;
}

absl::StatusOr<std::optional<WorkloadRow>> MemoryDatabase::FindWorkload(const Hash128& hash) {
  const auto found = facts_.workloads.find(hash);
  return found == facts_.workloads.end() ? std::nullopt : std::optional(found->second);
}

absl::StatusOr<std::optional<RankedRecord>> MemoryDatabase::FindRecord(const Hash128& id) {
  for (const auto& [record, merged] : facts_.records) {
    if (record.id == id) return std::optional(Rank(record, merged, ""));
  }
  return std::optional<RankedRecord>();
}

absl::StatusOr<std::optional<Session>> MemoryDatabase::FindSession(const Hash128& id) {
  for (const auto& [session, merged] : facts_.sessions) {
    if (session.id == id) return std::optional(session);
  }
  return std::optional<Session>();
}

absl::StatusOr<std::optional<std::string>> MemoryDatabase::FindBlob(const std::string& digest) {
  const auto found = facts_.blobs.find(digest);
  return found == facts_.blobs.end() ? std::nullopt : std::optional(found->second);
}

absl::Status MemoryDatabase::ScanWorkloads(const Visit<WorkloadRow>& visit) {
  for (const auto& [hash, workload] : facts_.workloads) HONE_RETURN_IF_ERROR(visit(workload));
  return absl::OkStatus();
}

absl::Status MemoryDatabase::ScanDevices(const Visit<Device>& visit) {
  for (const auto& [id, device] : facts_.devices) HONE_RETURN_IF_ERROR(visit(device));
  return absl::OkStatus();
}

absl::Status MemoryDatabase::ScanSessions(const Visit<StoredSession>& visit) {
  for (const auto& [session, merged] : facts_.sessions) {
    HONE_RETURN_IF_ERROR(visit(StoredSession{.session = session, .merged = merged}));
  }
  return absl::OkStatus();
}

absl::Status MemoryDatabase::ScanBlobs(const Visit<Blob>& visit) {
  for (const auto& [digest, bytes] : facts_.blobs) {
    HONE_RETURN_IF_ERROR(visit(Blob{.digest = digest, .bytes = bytes}));
  }
  return absl::OkStatus();
}

absl::Status MemoryDatabase::ScanRecords(const FactFilter& filter,
                                         const Visit<RankedRecord>& visit) {
  for (const auto& [record, merged] : facts_.records) {
    if (!Admits(filter, record.key, record.session, merged)) continue;
    HONE_RETURN_IF_ERROR(visit(Rank(record, merged, "")));
  }
  return absl::OkStatus();
}

absl::Status MemoryDatabase::ScanAttempts(const FactFilter& filter, const Visit<Attempt>& visit) {
  for (const auto& [attempt, merged] : facts_.attempts) {
    if (!Admits(filter, attempt.key, attempt.session, merged)) continue;
    HONE_RETURN_IF_ERROR(visit(attempt));
  }
  return absl::OkStatus();
}

absl::Status MemoryDatabase::ScanValues(const FactFilter& filter, const Visit<TraceValues>& visit) {
  for (const TraceValues& values : facts_.values) {
    if (filter.workload && values.workload != *filter.workload) continue;
    HONE_RETURN_IF_ERROR(visit(values));
  }
  return absl::OkStatus();
}

absl::Status MemoryDatabase::ScanEvents(const FactFilter& filter, const Visit<Event>& visit) {
  for (const auto& [event, merged] : facts_.events) {
    if (filter.session && event.session != *filter.session) continue;
    if (event.sequence <= filter.after_sequence || (filter.local_only && merged)) continue;
    HONE_RETURN_IF_ERROR(visit(event));
  }
  return absl::OkStatus();
}

absl::StatusOr<LogStats> MemoryDatabase::Stats() {
  LogStats stats;
  std::set<std::string> traces;
  for (const auto& [record, merged] : facts_.records) {
    traces.insert(record.trace);
    ++stats.by_rigor[static_cast<size_t>(record.rigor)];
    if (merged) ++stats.merged_records;
  }
  for (const auto& [attempt, merged] : facts_.attempts) {
    traces.insert(attempt.trace);
    ++stats.by_outcome[static_cast<size_t>(attempt.outcome)];
  }
  stats.workloads = static_cast<int64_t>(facts_.workloads.size());
  stats.traces = static_cast<int64_t>(traces.size());
  stats.devices = static_cast<int64_t>(facts_.devices.size());
  stats.sessions = static_cast<int64_t>(facts_.sessions.size());
  stats.attempts = static_cast<int64_t>(facts_.attempts.size());
  stats.records = static_cast<int64_t>(facts_.records.size());
  stats.events = static_cast<int64_t>(facts_.events.size());
  stats.blobs = static_cast<int64_t>(facts_.blobs.size());
  return stats;
}

}  // namespace hone::db
