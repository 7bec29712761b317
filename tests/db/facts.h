#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "db/database.h"

// Facts as a tuning session writes them, the same for the same number.
namespace hone::db {

/// 128 bits that depend on both.
Hash128 TestId(const std::string& kind, int number);

WorkloadRow TestWorkload(int number);
Device TestDevice(const std::string& device_class = "cpu/acme/1/l2=1M/l3=2M/cores=8");
Session TestSession(int number);
RecordKey TestKey(int workload = 0);
/// A record of TestKey(0), latency 1000 + number.
TuningRecord TestRecord(int number, int session = 0);
Attempt TestAttempt(int number, int session = 0);
/// What the Trace of record and attempt `number` was written from.
TraceValues TestValues(int number);
Event TestEvent(int number, int session = 0);
Blob TestBlob(const std::string& bytes);

/// Workloads 0 to 2, the device and session 0: what the facts above name.
Batch TestGround();

/// The k-th acknowledgement of a session: record, attempt and event `number`.
Batch TestStep(int number);

/// A folder of its own for one test, empty, removed in the end.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace hone::db
