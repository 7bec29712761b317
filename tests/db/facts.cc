#include "facts.h"

#include <unistd.h>

#include "fmt/core.h"
#include "gtest/gtest.h"

#include "base/sha256.h"

namespace hone::db {

Hash128 TestId(const std::string& kind, int number) {
  return HashBytes(fmt::format("{} {}", kind, number));
}

WorkloadRow TestWorkload(int number) {
  const std::string text = fmt::format(
      "workload 1\nx0: f32[{0},16] input range(-1,1)\nx1: f32[16,4] constant\n"
      "s0: f32[{0},4] output = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n",
      8 + number);
  return {.hash = HashBytes(text), .text = text, .flop = 1024 + number, .bytes = 4096};
}

Device TestDevice(const std::string& device_class) {
  return {.device_class = device_class, .fingerprint = "fingerprint of " + device_class};
}

Session TestSession(int number) {
  return {.id = TestId("session", number),
          .request = fmt::format(R"({{"model":"m{}.onnx"}})", number),
          .seed = 0xffff'ffff'ffff'fff0 + static_cast<uint64_t>(number),
          .versions = R"({"hone":"0.1.0"})",
          .created_ms = 1'700'000'000'000 + number};
}

RecordKey TestKey(int workload) {
  return {.workload = TestWorkload(workload).hash,
          .target = "cpu:avx512,threads=2",
          .device_class = TestDevice().device_class,
          .accuracy = ir::AccuracyClass::kDefault,
          .measurement_policy = 1};
}

TuningRecord TestRecord(int number, int session) {
  const double median_ns = 1000.0 + number;
  return {.id = TestId("record", number),
          .key = TestKey(0),
          .device = DeviceId(TestDevice()),
          .trace = fmt::format("split(s0.i0, {})\nvectorize(s0.i1)\n", number),
          .trace_version = 1,
          .builder_version = "1+22.1",
          .rigor = Rigor::kScreened,
          .median_ns = median_ns,
          .low_ns = median_ns - 0.5,
          .high_ns = median_ns + 0.25,
          .noisy = number % 7 == 0,
          .session = TestId("session", session),
          .seed = 17,
          .created_ms = 1'700'000'000'000 + number,
          .samples_ns = {median_ns + 0.25, median_ns, median_ns - 0.5}};
}

Attempt TestAttempt(int number, int session) {
  return {.id = TestId("attempt", number),
          .session = TestId("session", session),
          .key = TestKey(0),
          .device = DeviceId(TestDevice()),
          .trace = fmt::format("split(s0.i0, {})\nvectorize(s0.i1)\n", number),
          .proposer = "model",
          .outcome = Outcome::kOk,
          .record = TestId("record", number),
          .cost_ns = 50'000'000,
          .created_ms = 1'700'000'000'000 + number};
}

TraceValues TestValues(int number) {
  return {.workload = TestKey(0).workload,
          .target = TestKey(0).target,
          .trace = TraceHash(TestRecord(number).trace),
          .text = fmt::format("direct/peeled rows={}", number)};
}

Event TestEvent(int number, int session) {
  return {.id = TestId("event", number),
          .session = TestId("session", session),
          .type = "result",
          .payload = fmt::format("attempt {}", number) + std::string("\0\xff", 2)};
}

Blob TestBlob(const std::string& bytes) { return {.digest = Sha256Hex(bytes), .bytes = bytes}; }

Batch TestGround() {
  return {.workloads = {TestWorkload(0), TestWorkload(1), TestWorkload(2)},
          .devices = {TestDevice()},
          .sessions = {TestSession(0)}};
}

Batch TestStep(int number) {
  return {.records = {TestRecord(number)},
          .attempts = {TestAttempt(number)},
          .values = {TestValues(number)},
          .events = {TestEvent(number)}};
}

TestFolder::TestFolder() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = info == nullptr ? "log" : info->name();
  for (char& c : name) c = c == '/' ? '_' : c;
  // In memory where that is possible: most of these tests' time would be waiting for a disk.
  const char* memory = "/dev/shm";
  const bool fast = ::access(memory, W_OK | X_OK) == 0;
  path_ = std::filesystem::path(fast ? memory : ::testing::TempDir()) /
          fmt::format("hone_db_{}_{}", ::getpid(), name);
  std::filesystem::remove_all(path_);
  std::filesystem::create_directories(path_);
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hone::db
