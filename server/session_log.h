#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "db/log_file.h"
#include "server/farm_loop.h"

namespace hone::server {

/// The log as readers beside the writer, for many threads: each call has one of a few connections
/// alone for as long as it takes, so that short questions pass long ones. Sees what is durable and
/// nothing else.
class SharedReader {
 public:
  static absl::StatusOr<std::unique_ptr<SharedReader>> Open(const std::string& path,
                                                            int connections = 1);

  /// Runs `read` with the log; the result of it.
  template <typename Read>
  auto With(const Read& read) {
    const Use use(*this);
    return read(*use.log);
  }

 private:
  /// Takes the connection that was used last, whose pages are warm, and gives it back.
  struct Use {
    explicit Use(SharedReader& reader) : owner(reader) {
      std::unique_lock lock(owner.mutex_);
      owner.given_back_.wait(lock, [this] { return !owner.free_.empty(); });
      log = owner.free_.back();
      owner.free_.pop_back();
    }
    ~Use() {
      {
        const std::lock_guard lock(owner.mutex_);
        owner.free_.push_back(log);
      }
      owner.given_back_.notify_one();
    }
    Use(const Use&) = delete;
    SharedReader& owner;
    db::LogFile* log = nullptr;
  };

  explicit SharedReader(std::vector<std::unique_ptr<db::LogFile>> logs);
  const std::vector<std::unique_ptr<db::LogFile>> logs_;
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<db::LogFile*> free_;  ///< guarded by mutex_
};

/// The log for the driver of one session: reads through the reader, appends through the loop's
/// group commit. What it does not need is kUnimplemented. As thread-safe as the two.
class SessionLog final : public db::Database {
 public:
  SessionLog(SharedReader& reader, FarmLoop& loop) : reader_(reader), loop_(loop) {}

  absl::StatusOr<db::Appended> Append(const db::Batch& batch, db::Origin origin) override;
  /// The same without waiting; `done` is called once, on the loop or by who ends it.
  void BeginAppend(db::Batch batch, std::function<void(const absl::Status&)> done);
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
  SharedReader& reader_;
  FarmLoop& loop_;
};

}  // namespace hone::server
