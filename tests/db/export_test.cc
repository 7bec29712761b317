#include "db/export.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "db/memory_database.h"
#include "facts.h"

namespace hone::db {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Export(Database& database) {
  std::vector<std::string> lines;
  EXPECT_TRUE(ExportLog(database, [&](const std::string& line) {
                lines.push_back(line);
                return absl::OkStatus();
              }).ok());
  return lines;
}

TEST(ExportLog, WritesEveryKindAsOneObjectALine) {
  MemoryDatabase database;
  Batch batch;
  batch.workloads = {{.hash = HashBytes("workload 1\n"), .text = "workload 1\n", .flop = 7}};
  batch.devices = {{.device_class = "cpu/\"a\"", .fingerprint = "back\\slash\ttab"}};
  batch.sessions = {TestSession(0)};
  batch.blobs = {TestBlob("model")};
  TuningRecord record = TestRecord(1);
  record.key.workload = batch.workloads[0].hash;
  record.key.device_class = batch.devices[0].device_class;
  record.device = DeviceId(batch.devices[0]);
  record.median_ns = 1000.6;
  batch.records = {record};
  Attempt attempt = TestAttempt(1);
  attempt.key = record.key;
  attempt.device = record.device;
  attempt.outcome = Outcome::kRunTimeout;
  attempt.record = {};
  attempt.message = "longer than 2 s";
  batch.attempts = {attempt};
  batch.values = {
      {record.key.workload, record.key.target, TraceHash(record.trace), "rows unroll=2"}};
  batch.events = {TestEvent(1),
                  {.id = TestId("event", 2), .type = "tick", .payload = "\xc3\xa9\x01"}};
  ASSERT_TRUE(database.Append(batch).ok());
  const std::string workload = batch.workloads[0].hash.ToHex();
  const std::string device = record.device.ToHex();
  const std::string session = TestId("session", 0).ToHex();
  const std::string key = R"("workload":")" + workload +
                          R"(","target":"cpu:avx512,threads=2","device_class":"cpu/\"a\"",)"
                          R"("accuracy":"default","measurement_policy":1,)";
  const std::string trace = R"("trace":"split(s0.i0, 1)\nvectorize(s0.i1)\n",)";
  EXPECT_THAT(
      Export(database),
      ElementsAre(
          R"({"kind":"workload","hash":")" + workload +
              R"(","text":"workload 1\n","flop":7,"bytes":0})",
          R"({"kind":"device","id":")" + device +
              R"(","device_class":"cpu/\"a\"","fingerprint":"back\\slash\u0009tab"})",
          R"({"kind":"session","id":")" + session +
              R"(","request":"{\"model\":\"m0.onnx\"}","seed":"18446744073709551600",)"
              R"("versions":"{\"hone\":\"0.1.0\"}","created_ms":1700000000000,"merged":false})",
          R"({"kind":"blob","digest":")" + batch.blobs[0].digest + R"(","bytes":5})",
          R"({"kind":"record","id":")" + record.id.ToHex() + R"(",)" + key + R"("device":")" +
              device + R"(",)" + trace + R"("trace_hash":")" + TraceHash(record.trace).ToHex() +
              R"(","trace_version":1,"builder_version":"1+22.1","rigor":"screened",)"
              R"("median_ns":1000.6,"low_ns":1000.5,"high_ns":1001.25,"noisy":false,)"
              R"("samples_ns":[1001.25,1001,1000.5],"session":")" +
              session + R"(","seed":"17","created_ms":1700000000001,"content":")" +
              ContentHash(record).ToHex() + R"(","merged":false})",
          R"({"kind":"attempt","id":")" + attempt.id.ToHex() + R"(","session":")" + session +
              R"(",)" + key + R"("device":")" + device + R"(",)" + trace +
              R"("proposer":"model","outcome":"run_timeout","message":"longer than 2 s",)"
              R"("cost_ns":50000000,"created_ms":1700000000001})",
          R"({"kind":"values","workload":")" + workload +
              R"(","target":"cpu:avx512,threads=2","trace_hash":")" +
              TraceHash(record.trace).ToHex() + R"(","text":"rows unroll=2"})",
          R"({"kind":"event","id":")" + TestId("event", 1).ToHex() +
              R"(","sequence":1,"session":")" + session +
              R"(","type":"result","payload_hex":"617474656d707420310)" + R"(0ff"})",
          R"({"kind":"event","id":")" + TestId("event", 2).ToHex() +
              R"(","sequence":2,"type":"tick","payload":")"
              "\xc3\xa9"
              R"(\u0001"})"));
}

TEST(ExportLog, TextsThatAreNotUtf8AppearInHexadecimal) {
  const std::vector<std::pair<std::string, bool>> texts = {
      {"", true},
      {"\x7f", true},
      {"\xe2\x82\xac", true},
      {"\xf0\x9f\x98\x80", true},
      {"\x80", false},
      {"\xc0\xaf", false},          // overlong
      {"\xe0\x80\xaf", false},      // overlong
      {"\xed\xa0\x80", false},      // a surrogate
      {"\xf4\x90\x80\x80", false},  // beyond U+10FFFF
      {"\xe2\x82", false},          // cut
      {"\xff", false}};
  for (const auto& [text, is_text] : texts) {
    MemoryDatabase database;
    ASSERT_TRUE(
        database.Append({.events = {{.id = TestId("event", 1), .type = "t", .payload = text}}})
            .ok());
    const std::string line = Export(database).at(0);
    EXPECT_EQ(line.find("payload_hex") == std::string::npos, is_text) << line;
  }
}

TEST(ExportLog, AnErrorOfTheWriterEndsIt) {
  MemoryDatabase database;
  ASSERT_TRUE(database.Append(TestGround()).ok());
  int lines = 0;
  EXPECT_EQ(ExportLog(database,
                      [&](const std::string&) {
                        return ++lines == 2 ? absl::ResourceExhaustedError("full")
                                            : absl::OkStatus();
                      }),
            absl::ResourceExhaustedError("full"));
  EXPECT_EQ(lines, 2);
}

}  // namespace
}  // namespace hone::db
