#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/server_connection.h"
#include "db/database.h"

namespace hone::client {

/// What a look-up reads, asked of a server: TopRecords, SameIsaRecords and, for the Workload set
/// last, those near it. Everything else is kUnimplemented. Not thread-safe.
class ServerDatabase final : public db::Database {
 public:
  explicit ServerDatabase(std::unique_ptr<ServerConnection> server) : server_(std::move(server)) {}

  /// What is looked up next: MeasuredWorkloads gives only those of this Workload's form,
  /// ModelVerdicts those for this target and device class.
  void SetSubject(const db::RecordKey& key, std::string workload_text) {
    last_key_ = key;
    subject_ = std::move(workload_text);
  }

  absl::StatusOr<db::Appended> Append(const db::Batch& batch, db::Origin origin) override;
  absl::StatusOr<std::unique_ptr<ReadScope>> BeginRead() override;
  absl::StatusOr<std::vector<db::RankedRecord>> TopRecords(const db::RecordQuery& query,
                                                           int limit) override;
  absl::StatusOr<std::vector<db::RankedRecord>> SameIsaRecords(
      const db::RecordQuery& query) override;
  absl::StatusOr<std::vector<db::WorkloadRow>> MeasuredWorkloads(const std::string& isa,
                                                                 int measurement_policy) override;
  absl::StatusOr<std::vector<db::ModelVerdict>> ModelVerdicts(const Hash128& model) override;
  absl::StatusOr<std::optional<db::WorkloadRow>> FindWorkload(const Hash128& hash) override;
  absl::StatusOr<std::optional<db::RankedRecord>> FindRecord(const Hash128& id) override;
  absl::StatusOr<std::optional<db::Session>> FindSession(const Hash128& id) override;
  absl::StatusOr<std::optional<std::string>> FindBlob(const std::string& digest) override;
  absl::Status ScanWorkloads(const Visit<db::WorkloadRow>& visit) override;
  absl::Status ScanDevices(const Visit<db::Device>& visit) override;
  absl::Status ScanSessions(const Visit<db::StoredSession>& visit) override;
  absl::Status ScanBlobs(const Visit<db::Blob>& visit) override;
  absl::Status ScanRecords(const db::FactFilter& filter,
                           const Visit<db::RankedRecord>& visit) override;
  absl::Status ScanAttempts(const db::FactFilter& filter, const Visit<db::Attempt>& visit) override;
  absl::Status ScanValues(const db::FactFilter& filter,
                          const Visit<db::TraceValues>& visit) override;
  absl::Status ScanEvents(const db::FactFilter& filter, const Visit<db::Event>& visit) override;
  absl::StatusOr<db::LogStats> Stats() override;

 private:
  const std::unique_ptr<ServerConnection> server_;
  std::string subject_;
  db::RecordKey last_key_;
};

}  // namespace hone::client
