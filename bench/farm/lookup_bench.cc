#include "bench/farm/lookup_bench.h"

#include <algorithm>
#include <array>
#include <memory>

#include "fmt/format.h"

#include "base/core/random.h"
#include "base/core/random_id.h"
#include "base/status.h"
#include "base/versions.h"
#include "db/log_file.h"

namespace hone::bench {
namespace {

constexpr std::array<const char*, 4> kTargets = {"cpu:avx512,threads=1", "cpu:avx2,threads=1",
                                                 "cpu:avx512,threads=4", "cpu:avx2,threads=8"};
constexpr char kClass[] = "simulated";
constexpr int64_t kRecordsABatch = 5000;
constexpr int kSamples = 20;
constexpr char kBuilder[] = "1+22.1";

std::string WorkloadText(int64_t number) {
  return fmt::format(
      "workload 1\n"
      "x0: f32[{0},{2}] input range(-1,1)\n"
      "x1: f32[{2},{1}] constant\n"
      "x2: f32[{1}] constant\n"
      "s0: f32[{0},{1}] = sum[r0:{2}] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[{0},{1}] output = max(s0[i0, i1] + x2[i1], 0.0)\n",
      1 + number % 512, 16 + number / 512, 64);
}

/// As long as those of a convolution are.
std::string TraceText(int64_t number) {
  std::string text;
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("split s1.i{} into {} {} {} tail=mask\n", i % 4, number % 61 + i,
                        number / 61 % 67, number / 4087);
  }
  return text + "vectorize s1.i1.2\nparallel s1.i0.0 threads=1\n";
}

db::RecordKey KeyOf(int64_t key) {
  const auto targets = static_cast<int64_t>(kTargets.size());
  return {.workload = HashBytes(WorkloadText(key / targets)),
          .target = kTargets[static_cast<size_t>(key % targets)],
          .device_class = kClass,
          .accuracy = ir::AccuracyClass::kDefault,
          .measurement_policy = kCpuVersions.measurement_policy};
}

}  // namespace

absl::Status MakeLookupLog(const LookupLog& log, const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<db::LogFile> file,
                        db::OpenLog(path, {.mode = db::OpenMode::kWrite}));
  const db::Device device{kClass, "simulated"};
  const db::Session session{.id = RandomId(), .request = "{}", .versions = "{}"};
  db::Batch batch;
  batch.devices.push_back(device);
  batch.sessions.push_back(session);
  for (int64_t i = 0; i < (log.keys + 3) / 4; ++i) {
    const std::string text = WorkloadText(i);
    batch.workloads.push_back({.hash = HashBytes(text), .text = text, .flop = 1, .bytes = 1});
  }
  HONE_RETURN_IF_ERROR(file->Append(batch).status());
  batch = {};
  Random random(7);
  for (int64_t i = 0; i < log.records; ++i) {
    const double median_ns = 1e5 * (1 + random.Uniform());
    db::TuningRecord& record = batch.records.emplace_back();
    record = {.id = FactId(),
              .key = KeyOf(i % log.keys),
              .device = db::DeviceId(device),
              .trace = TraceText(i),
              .trace_version = kTraceTextVersion,
              .builder_version = kBuilder,
              .median_ns = median_ns,
              .low_ns = 0.99 * median_ns,
              .high_ns = 1.01 * median_ns,
              .session = session.id};
    record.samples_ns.assign(kSamples, median_ns);
    if (i + 1 < log.records && (i + 1) % kRecordsABatch != 0) continue;
    HONE_RETURN_IF_ERROR(file->Append(batch).status());
    batch = {};
  }
  return absl::OkStatus();
}

std::vector<db::RecordKey> LookupQuestions(const LookupLog& log, int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<db::RecordKey> questions;
  for (int64_t i = 0; i < count; ++i) {
    const auto drawn = static_cast<int64_t>(random.Below(static_cast<uint64_t>(log.keys)));
    db::RecordKey& key = questions.emplace_back(KeyOf(drawn));
    if (i % 4 == 1) key.workload = {random.Next(), random.Next()};
    if (i % 4 == 3) key.device_class = "another";
  }
  return questions;
}

absl::StatusOr<Latencies::Summary> TimeSnapshotLookups(const std::string& snapshot,
                                                       const std::vector<db::RecordKey>& questions,
                                                       const MonotonicClock& clock) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<db::LogFile> log,
                        db::OpenLog(snapshot, {.mode = db::OpenMode::kSnapshot}));
  Latencies latencies;
  for (const bool measured : {false, true}) {
    int64_t found = 0;
    for (const db::RecordKey& key : questions) {
      const int64_t start_ns = clock.NowNs();
      HONE_ASSIGN_OR_RETURN(const auto records, log->TopRecords({key, kBuilder}, 1));
      if (measured) latencies.Add(clock.NowNs() - start_ns);
      found += records.empty() ? 0 : 1;
    }
    if (found != static_cast<int64_t>((questions.size() + 1) / 2)) {
      return absl::InternalError(
          fmt::format("{} of {} questions were answered", found, questions.size()));
    }
  }
  return latencies.Since(0);
}

}  // namespace hone::bench
