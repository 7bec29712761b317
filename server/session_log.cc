#include "server/session_log.h"

#include <utility>

#include "base/status.h"

namespace hone::server {

SharedReader::SharedReader(std::vector<std::unique_ptr<db::LogFile>> logs)
    : logs_(std::move(logs)) {
  for (const auto& log : logs_) free_.push_back(log.get());
}

absl::StatusOr<std::unique_ptr<SharedReader>> SharedReader::Open(const std::string& path,
                                                                 int connections) {
  std::vector<std::unique_ptr<db::LogFile>> logs;
  for (int i = 0; i < connections; ++i) {
    HONE_ASSIGN_OR_RETURN(logs.emplace_back(), db::OpenLog(path, {.mode = db::OpenMode::kRead}));
  }
  return std::unique_ptr<SharedReader>(new SharedReader(std::move(logs)));
}

absl::StatusOr<db::Appended> SessionLog::Append(const db::Batch& batch, db::Origin origin) {
  if (origin != db::Origin::kHere) return absl::UnimplementedError("a session merges nothing");
  HONE_RETURN_IF_ERROR(
      loop_.Run({.prepare = [&](Farm&, db::FarmStore&, db::FarmUnit& unit, int64_t) {
        unit.facts = batch;
        return absl::OkStatus();
      }}));
  return db::Appended{};
}

void SessionLog::BeginAppend(db::Batch batch, std::function<void(const absl::Status&)> done) {
  loop_.Post({.prepare =
                  [batch = std::make_shared<db::Batch>(std::move(batch))](
                      Farm&, db::FarmStore&, db::FarmUnit& unit, int64_t) {
                    unit.facts = std::move(*batch);
                    return absl::OkStatus();
                  },
              .done = [done = std::move(done)](Farm&, const absl::Status& status,
                                               int64_t) { done(status); }});
}

absl::StatusOr<std::unique_ptr<db::Database::ReadScope>> SessionLog::BeginRead() {
  return absl::UnimplementedError("a session reads no single state");
}

absl::StatusOr<std::vector<db::RankedRecord>> SessionLog::TopRecords(const db::RecordQuery& query,
                                                                     int limit) {
  return reader_.With([&](db::LogFile& log) { return log.TopRecords(query, limit); });
}

absl::StatusOr<std::vector<db::RankedRecord>> SessionLog::SameIsaRecords(
    const db::RecordQuery& query) {
  return reader_.With([&](db::LogFile& log) { return log.SameIsaRecords(query); });
}

absl::StatusOr<std::vector<db::WorkloadRow>> SessionLog::MeasuredWorkloads(const std::string& isa,
                                                                           int measurement_policy) {
  return reader_.With(
      [&](db::LogFile& log) { return log.MeasuredWorkloads(isa, measurement_policy); });
}

absl::StatusOr<std::vector<db::ModelVerdict>> SessionLog::ModelVerdicts(const Hash128& model) {
  return reader_.With([&](db::LogFile& log) { return log.ModelVerdicts(model); });
}

absl::StatusOr<std::optional<db::WorkloadRow>> SessionLog::FindWorkload(const Hash128& hash) {
  return reader_.With([&](db::LogFile& log) { return log.FindWorkload(hash); });
}

absl::StatusOr<std::optional<db::RankedRecord>> SessionLog::FindRecord(const Hash128& id) {
  return reader_.With([&](db::LogFile& log) { return log.FindRecord(id); });
}

absl::StatusOr<std::optional<db::Session>> SessionLog::FindSession(const Hash128& id) {
  return reader_.With([&](db::LogFile& log) { return log.FindSession(id); });
}

absl::StatusOr<std::optional<std::string>> SessionLog::FindBlob(const std::string& digest) {
  return reader_.With([&](db::LogFile& log) { return log.FindBlob(digest); });
}

absl::Status SessionLog::ScanWorkloads(const Visit<db::WorkloadRow>& visit) {
  return reader_.With([&](db::LogFile& log) { return log.ScanWorkloads(visit); });
}

absl::Status SessionLog::ScanDevices(const Visit<db::Device>& visit) {
  return reader_.With([&](db::LogFile& log) { return log.ScanDevices(visit); });
}

absl::Status SessionLog::ScanSessions(const Visit<db::StoredSession>& visit) {
  return reader_.With([&](db::LogFile& log) { return log.ScanSessions(visit); });
}

absl::Status SessionLog::ScanBlobs(const Visit<db::Blob>& visit) {
  return reader_.With([&](db::LogFile& log) { return log.ScanBlobs(visit); });
}

absl::Status SessionLog::ScanRecords(const db::FactFilter& filter,
                                     const Visit<db::RankedRecord>& visit) {
  return reader_.With([&](db::LogFile& log) { return log.ScanRecords(filter, visit); });
}

absl::Status SessionLog::ScanAttempts(const db::FactFilter& filter,
                                      const Visit<db::Attempt>& visit) {
  return reader_.With([&](db::LogFile& log) { return log.ScanAttempts(filter, visit); });
}

absl::Status SessionLog::ScanValues(const db::FactFilter& filter,
                                    const Visit<db::TraceValues>& visit) {
  return reader_.With([&](db::LogFile& log) { return log.ScanValues(filter, visit); });
}

absl::Status SessionLog::ScanEvents(const db::FactFilter& filter, const Visit<db::Event>& visit) {
  return reader_.With([&](db::LogFile& log) { return log.ScanEvents(filter, visit); });
}

absl::StatusOr<db::LogStats> SessionLog::Stats() {
  return reader_.With([&](db::LogFile& log) { return log.Stats(); });
}

}  // namespace hone::server
