#include "client/server_database.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "proto/limits.h"

namespace hone::client {
namespace {

absl::Status NotServed() {
  return absl::UnimplementedError("a server answers look-ups; take a snapshot for everything else");
}

class NoScope final : public db::Database::ReadScope {};

}  // namespace

absl::StatusOr<std::unique_ptr<db::Database::ReadScope>> ServerDatabase::BeginRead() {
  // Each question is answered from one state; between them the log may have grown.
  return std::make_unique<NoScope>();
}

absl::StatusOr<std::vector<db::RankedRecord>> ServerDatabase::TopRecords(
    const db::RecordQuery& query, int limit) {
  last_key_ = query.key;
  HONE_ASSIGN_OR_RETURN(ServerConnection::Found found,
                        server_->FindRecords({.key = query.key,
                                              .builder_version = query.builder_version,
                                              .question = proto::RecordQuestion::kExact,
                                              .limit = std::clamp(limit, 1, proto::kMaxFound)}));
  return std::move(found.records);
}

absl::StatusOr<std::vector<db::RankedRecord>> ServerDatabase::SameIsaRecords(
    const db::RecordQuery& query) {
  last_key_ = query.key;
  HONE_ASSIGN_OR_RETURN(ServerConnection::Found found,
                        server_->FindRecords({.key = query.key,
                                              .builder_version = query.builder_version,
                                              .question = proto::RecordQuestion::kSameIsa,
                                              .limit = proto::kMaxFound}));
  return std::move(found.records);
}

absl::StatusOr<std::vector<db::WorkloadRow>> ServerDatabase::MeasuredWorkloads(
    const std::string& /*isa*/, int /*measurement_policy*/) {
  // The ISA and the policy are those of the key that was asked for just before.
  HONE_ASSIGN_OR_RETURN(ServerConnection::Found found,
                        server_->FindRecords({.key = last_key_,
                                              .question = proto::RecordQuestion::kNear,
                                              .workload_text = subject_,
                                              .limit = proto::kMaxFound}));
  std::vector<db::WorkloadRow> rows;
  for (std::string& text : found.workloads) {
    const Hash128 hash = HashBytes(text);
    rows.push_back({.hash = hash, .text = std::move(text)});
  }
  std::ranges::sort(rows, {}, &db::WorkloadRow::hash);
  return rows;
}

absl::StatusOr<std::vector<db::ModelVerdict>> ServerDatabase::ModelVerdicts(const Hash128& model) {
  HONE_ASSIGN_OR_RETURN(ServerConnection::Found found,
                        server_->FindRecords({.key = last_key_,
                                              .question = proto::RecordQuestion::kExact,
                                              .limit = 1,
                                              .model = model}));
  return std::move(found.verdicts);
}

absl::StatusOr<db::Appended> ServerDatabase::Append(const db::Batch&, db::Origin) {
  return NotServed();
}

absl::StatusOr<std::optional<db::WorkloadRow>> ServerDatabase::FindWorkload(const Hash128&) {
  return NotServed();
}

absl::StatusOr<std::optional<db::RankedRecord>> ServerDatabase::FindRecord(const Hash128&) {
  return NotServed();
}

absl::StatusOr<std::optional<db::Session>> ServerDatabase::FindSession(const Hash128&) {
  return NotServed();
}

absl::StatusOr<std::optional<std::string>> ServerDatabase::FindBlob(const std::string&) {
  return NotServed();
}

absl::Status ServerDatabase::ScanWorkloads(const Visit<db::WorkloadRow>&) { return NotServed(); }

absl::Status ServerDatabase::ScanDevices(const Visit<db::Device>&) { return NotServed(); }

absl::Status ServerDatabase::ScanSessions(const Visit<db::StoredSession>&) { return NotServed(); }

absl::Status ServerDatabase::ScanBlobs(const Visit<db::Blob>&) { return NotServed(); }

absl::Status ServerDatabase::ScanRecords(const db::FactFilter&, const Visit<db::RankedRecord>&) {
  return NotServed();
}

absl::Status ServerDatabase::ScanAttempts(const db::FactFilter&, const Visit<db::Attempt>&) {
  return NotServed();
}

absl::Status ServerDatabase::ScanValues(const db::FactFilter&, const Visit<db::TraceValues>&) {
  return NotServed();
}

absl::Status ServerDatabase::ScanEvents(const db::FactFilter&, const Visit<db::Event>&) {
  return NotServed();
}

absl::StatusOr<db::LogStats> ServerDatabase::Stats() { return NotServed(); }

}  // namespace hone::client
