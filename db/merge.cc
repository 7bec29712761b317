#include "db/merge.h"

#include <memory>
#include <utility>

#include "base/status.h"

namespace hone::db {
namespace {

constexpr int64_t kBatchBytes = int64_t{4} << 20;
constexpr int64_t kBatchFacts = 1024;

// Collects facts into batches of a fair size.
class Merger {
 public:
  explicit Merger(Database& into) : into_(into) {}

  template <typename T>
  absl::Status Add(std::vector<T> Batch::*list, const T& fact, size_t bytes) {
    (batch_.*list).push_back(fact);
    bytes_ += static_cast<int64_t>(bytes);
    return ++facts_ >= kBatchFacts || bytes_ >= kBatchBytes ? Flush() : absl::OkStatus();
  }

  absl::Status Flush() {
    const Batch batch = std::exchange(batch_, {});
    facts_ = bytes_ = 0;
    if (batch.empty()) return absl::OkStatus();
    const absl::Status appended = Append(batch);
    // A damaged log has facts that name lost ones: find out which.
    return appended.code() == absl::StatusCode::kInvalidArgument ? AppendSingly(batch) : appended;
  }

  MergeReport Take() { return std::move(report_); }

 private:
  absl::Status Append(const Batch& batch) {
    HONE_ASSIGN_OR_RETURN(Appended appended, into_.Append(batch, Origin::kMerged));
    report_.added += appended.added;
    report_.known += appended.known;
    for (Conflict& conflict : appended.conflicts) report_.conflicts.push_back(std::move(conflict));
    return absl::OkStatus();
  }

  absl::Status AppendSingly(const Batch& batch) {
    HONE_RETURN_IF_ERROR(AppendEach(batch, &Batch::workloads));
    HONE_RETURN_IF_ERROR(AppendEach(batch, &Batch::devices));
    HONE_RETURN_IF_ERROR(AppendEach(batch, &Batch::sessions));
    HONE_RETURN_IF_ERROR(AppendEach(batch, &Batch::blobs));
    HONE_RETURN_IF_ERROR(AppendEach(batch, &Batch::records));
    HONE_RETURN_IF_ERROR(AppendEach(batch, &Batch::attempts));
    HONE_RETURN_IF_ERROR(AppendEach(batch, &Batch::values));
    return AppendEach(batch, &Batch::events);
  }

  template <typename T>
  absl::Status AppendEach(const Batch& batch, std::vector<T> Batch::*list) {
    for (const T& fact : batch.*list) {
      Batch single;
      (single.*list).push_back(fact);
      const absl::Status appended = Append(single);
      if (appended.code() == absl::StatusCode::kInvalidArgument) {
        ++report_.dropped;
      } else if (!appended.ok()) {
        return appended;
      }
    }
    return absl::OkStatus();
  }

  Database& into_;
  Batch batch_;
  int64_t facts_ = 0;
  int64_t bytes_ = 0;
  MergeReport report_;
};

}  // namespace

absl::StatusOr<MergeReport> MergeLog(Database& into, Database& from) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Database::ReadScope> scope, from.BeginRead());
  Merger merger(into);
  // What is named comes before what names it.
  HONE_RETURN_IF_ERROR(from.ScanWorkloads([&](const WorkloadRow& workload) {
    return merger.Add(&Batch::workloads, workload, workload.text.size());
  }));
  HONE_RETURN_IF_ERROR(from.ScanDevices([&](const Device& device) {
    return merger.Add(&Batch::devices, device, device.fingerprint.size());
  }));
  HONE_RETURN_IF_ERROR(from.ScanSessions([&](const StoredSession& stored) {
    return merger.Add(&Batch::sessions, stored.session, stored.session.request.size());
  }));
  HONE_RETURN_IF_ERROR(from.ScanBlobs(
      [&](const Blob& blob) { return merger.Add(&Batch::blobs, blob, blob.bytes.size()); }));
  HONE_RETURN_IF_ERROR(from.ScanRecords({}, [&](const RankedRecord& ranked) {
    const TuningRecord& record = ranked.record;
    return merger.Add(&Batch::records, record,
                      record.trace.size() + record.samples_ns.size() * sizeof(double));
  }));
  HONE_RETURN_IF_ERROR(from.ScanAttempts({}, [&](const Attempt& attempt) {
    return merger.Add(&Batch::attempts, attempt, attempt.trace.size() + attempt.message.size());
  }));
  HONE_RETURN_IF_ERROR(from.ScanValues({}, [&](const TraceValues& values) {
    return merger.Add(&Batch::values, values, values.text.size());
  }));
  HONE_RETURN_IF_ERROR(from.ScanEvents({}, [&](const Event& event) {
    return merger.Add(&Batch::events, event, event.payload.size());
  }));
  HONE_RETURN_IF_ERROR(merger.Flush());
  return merger.Take();
}

}  // namespace hone::db
