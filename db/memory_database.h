#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/database.h"

namespace hone::db {

/// A Database that ends with the process: for tests and dry runs, and the plain statement of what
/// every Database does.
class MemoryDatabase final : public Database {
 public:
  absl::StatusOr<Appended> Append(const Batch& batch, Origin origin = Origin::kHere) override;
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

 private:
  /// A fact, and whether it came from another log.
  template <typename T>
  struct Row {
    T fact;
    bool merged = false;
  };
  /// All facts; a copy of it takes a batch first, so that a refused one leaves no trace.
  struct Facts {
    std::map<Hash128, WorkloadRow> workloads;
    std::map<Hash128, Device> devices;
    std::map<std::string, std::string> blobs;
    std::vector<Row<Session>> sessions;
    std::vector<Row<TuningRecord>> records;
    std::vector<Row<Attempt>> attempts;
    std::vector<TraceValues> values;
    std::vector<Row<Event>> events;
  };

  template <typename T>
  static absl::Status AddFact(const T& fact, const std::string& kind, Origin origin,
                              std::vector<Row<T>>& rows, Appended& appended);
  /// False where the log has those of that Trace.
  static absl::StatusOr<bool> AddValues(const TraceValues& values, Facts& facts);
  static absl::Status AddAll(const Batch& batch, Origin origin, Facts& facts, Appended& appended);
  static absl::Status CheckReferences(const Facts& facts, const std::string& what,
                                      const RecordKey& key, const Hash128& device,
                                      const Hash128& session);

  /// The best of each group of records that `admits` lets through, in order of rank.
  template <typename Admits, typename GroupOf>
  std::vector<RankedRecord> BestOfGroups(const RecordQuery& query, Admits admits,
                                         GroupOf group_of) const;

  Facts facts_;
  bool reading_ = false;
};

}  // namespace hone::db
