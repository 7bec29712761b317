#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "base/core/clock.h"
#include "base/versions.h"
#include "db/farm_store.h"
#include "proto/convert.h"
#include "server/honed.h"
#include "tests/web/http_client.h"

// A whole honed, asked over real HTTP and real gRPC.
namespace hone::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using web_test::Ask;

class HonedHttpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "/hone-web-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
    Start();
  }
  void Start() {
    HonedOptions options;
    options.log_path = folder_ + "/tune.db";
    options.listen = "127.0.0.1:0";
    options.transport = Transport::kPlaintext;
    options.builder_version = "1+22.1";
    options.versions = "{}";
    options.metrics_listen = "127.0.0.1:0";
    options.page_listen = "127.0.0.1:0";
    auto honed = Honed::Start(options, clock_, wall_clock_);
    ASSERT_TRUE(honed.ok()) << honed.status();
    honed_ = *std::move(honed);
  }
  void TearDown() override {
    honed_.reset();
    std::filesystem::remove_all(folder_);
  }
  /// Asks until the answer has `text`, at most some seconds.
  std::string Until(const std::string& path, const std::string& text) {
    std::string body;
    for (int i = 0; i < 100; ++i) {
      body = Ask(honed_->metrics_port(), path).body;
      if (body.find(text) != std::string::npos) break;
      clock_.SleepNs(50'000'000);
    }
    return body;
  }

  json Json(const std::string& path) {
    const auto answer = Ask(honed_->page_port(), path);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body);
  }
  /// grpc.health.v1 by its wire format: the request's field 1 is the service's name, the answer's
  /// field 1 its state (1: serving, 2: not), which this gives as it comes.
  std::string HealthOf(const std::string& service) const;
  void AwaitHealth(const std::string& service, const std::string& state) const {
    for (int i = 0; i < 200 && HealthOf(service) != state; ++i) clock_.SleepNs(50'000'000);
    EXPECT_EQ(HealthOf(service), state) << service;
  }
  static db::FarmSession Row(const Hash128& id, db::SessionState state) {
    proto::SessionSpec spec{.model = "a model", .target = "cpu:avx2,threads=1"};
    spec.tasks = {{kWorkload, "a task", 1, 1e6, 0}};
    spec.device_class = "class";
    spec.trials = 10;
    return {.id = id,
            .owner = "alice",
            .project = "p",
            .digest = "d",
            .spec = proto::EncodeSpec(spec),
            .state = state,
            .device_class = "class"};
  }
  /// A session of three candidates, one of which failed, beside another with a failure of its own.
  void FillLog() const;

  static constexpr Hash128 kSession{1, 2}, kOther{1, 3};
  static constexpr char kWorkload[] =
      "workload 1\nx0: f32[8,16] input range(-1,1)\nx1: f32[16,4] constant\n"
      "s0: f32[8,4] output = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n";
  const SystemMonotonicClock clock_;
  const SystemWallClock wall_clock_;
  std::string folder_;
  std::unique_ptr<Honed> honed_;
};

void HonedHttpTest::FillLog() const {
  const auto log = db::OpenLog(folder_ + "/tune.db", {.mode = db::OpenMode::kWrite}).value();
  const db::Device device{.device_class = "class", .fingerprint = "f"};
  const db::RecordKey key{.workload = HashBytes(kWorkload),
                          .target = "cpu:avx2,threads=1",
                          .device_class = "class",
                          .measurement_policy = kCpuVersions.measurement_policy};
  db::Batch batch{
      .workloads = {{.hash = key.workload, .text = kWorkload, .flop = 1024, .bytes = 4096}},
      .devices = {device}};
  for (const Hash128& id : {kSession, kOther}) {
    batch.sessions.push_back({.id = id, .request = "{}", .versions = "{}"});
  }
  const auto record = [&](uint64_t number, double ns, const std::string& builder) {
    batch.records.push_back({.id = {8, number},
                             .key = key,
                             .device = db::DeviceId(device),
                             .trace = "unroll(s0.i1)\n",
                             .trace_version = 1,
                             .builder_version = builder,
                             .rigor = db::Rigor::kVerified,
                             .median_ns = ns,
                             .low_ns = ns,
                             .high_ns = ns,
                             .session = kSession,
                             .samples_ns = {ns}});
  };
  record(3, 2e6, "1+22.1");
  record(4, 1e6, "0+1.1");
  const auto attempt = [&](const Hash128& session, uint64_t number, db::Outcome outcome) {
    const bool ok = outcome == db::Outcome::kOk;
    batch.attempts.push_back({.id = {6, number},
                              .session = session,
                              .key = key,
                              .device = db::DeviceId(device),
                              .trace = ok ? "unroll(s0.i1)\n" : "vectorize(s0.i1)\n",
                              .proposer = "model",
                              .outcome = outcome,
                              .message = ok ? "" : "signal 11",
                              .record = ok ? Hash128{8, number} : Hash128{}});
  };
  attempt(kSession, 2, db::Outcome::kRunCrashed);
  attempt(kSession, 3, db::Outcome::kOk);
  attempt(kOther, 4, db::Outcome::kRunCrashed);
  for (const auto& [type, payload] :
       std::initializer_list<std::pair<const char*, const char*>>{{"elapsed", "1"},
                                                                  {"proposed", "1 0 7 default"},
                                                                  {"result", "1 ok 4000000 0.1"},
                                                                  {"proposed", "2 0 8 model"},
                                                                  {"result", "2 run_crashed 0 0"},
                                                                  {"elapsed", "2"},
                                                                  {"proposed", "3 0 9 model"},
                                                                  {"result", "3 ok 2000000 0.1"}}) {
    batch.events.push_back({.id = {7, batch.events.size() + 1},
                            .session = kSession,
                            .type = type,
                            .payload = payload});
  }
  batch.events.push_back({.id = {7, 99}, .session = kOther, .type = "elapsed", .payload = "77"});
  const auto appended = log->Append(batch, db::Origin::kHere);
  ASSERT_TRUE(appended.ok()) << appended.status();
  db::FarmUnit unit{.changes = {db::AddFarmSession{Row(kSession, db::SessionState::kFinished)},
                                db::AddFarmSession{Row(kOther, db::SessionState::kFinished)}}};
  ASSERT_TRUE(db::FarmStore::Open(*log).value()->Commit({&unit}).value().front().ok());
}

TEST_F(HonedHttpTest, ServesMetricsAndHealth) {
  const std::string text = Until("/metrics", "hone_leases_open 0\n");
  EXPECT_THAT(text, HasSubstr("hone_leases_open 0\n"));
  EXPECT_THAT(text, HasSubstr("hone_log_writable 1\n"));
  EXPECT_THAT(text, HasSubstr("builder=\"1+22.1\""));
  EXPECT_EQ(text.find("hone_log_bytes{file=\"main\"} 0\n"), std::string::npos);
  const auto metrics = Ask(honed_->metrics_port(), "/metrics");
  EXPECT_EQ(metrics.headers.at("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  const auto health = Ask(honed_->metrics_port(), "/healthz");
  EXPECT_EQ(health.status, 200);
  EXPECT_EQ(health.body, "ok\n");
  EXPECT_EQ(Ask(honed_->metrics_port(), "/").status, 404);
}

TEST_F(HonedHttpTest, ServesThePage) {
  const int port = honed_->page_port();
  EXPECT_THAT(Ask(port, "/").body, HasSubstr("<title>Hone farm</title>"));
  const auto farm = Ask(port, "/api/v1/farm");
  EXPECT_EQ(farm.status, 200);
  EXPECT_THAT(farm.body, HasSubstr("\"sessions\":[]"));
  EXPECT_EQ(Ask(port, "/", "GET", "tuner.example").status, 421);
  EXPECT_EQ(Ask(port, "/healthz").body, "ok\n");
}

TEST_F(HonedHttpTest, ThePageShowsTheSessionsOfTheLog) {
  honed_.reset();
  {
    const auto log = db::OpenLog(folder_ + "/tune.db", {.mode = db::OpenMode::kWrite}).value();
    db::FarmSession row{.id = {1, 2}, .owner = "alice", .project = "p", .digest = "d"};
    proto::SessionSpec spec{.model = "a model", .target = "cpu:avx2,threads=1"};
    spec.tasks = {{"a workload", "a task", 1, 1e6, 0}};
    spec.trials = 10;
    row.spec = proto::EncodeSpec(spec);
    ASSERT_TRUE(proto::DecodeSpec(row.spec).ok()) << proto::DecodeSpec(row.spec).status();
    row.state = db::SessionState::kFinished;
    db::FarmUnit unit{.changes = {db::AddFarmSession{row}}};
    ASSERT_TRUE(db::FarmStore::Open(*log).value()->Commit({&unit}).ok());
  }
  Start();
  for (int look = 0; look < 2; ++look) {
    const auto farm = Ask(honed_->page_port(), "/api/v1/farm");
    EXPECT_THAT(farm.body, HasSubstr("\"a model\""));
    clock_.SleepNs(look == 0 ? 2'000'000'000 : 0);  // its row is read again, its request is not
  }
}

// What PageSource asks of a real log: every route, of one session among others.
TEST_F(HonedHttpTest, EveryRouteTellsOfASessionOfTheLog) {
  honed_.reset();
  FillLog();
  Start();
  const std::string session = kSession.ToHex();
  const json shown = Json("/api/v1/session?id=" + session);
  EXPECT_EQ(shown["model"], "a model");
  EXPECT_EQ(shown["attempts"], 3);
  EXPECT_EQ(shown["failed"], 1);
  EXPECT_EQ(shown["complete"], true);
  EXPECT_DOUBLE_EQ(shown["elapsed_s"], 2);
  EXPECT_DOUBLE_EQ(shown["default_ms"], 4);
  EXPECT_DOUBLE_EQ(shown["best_ms"], 2);
  EXPECT_EQ(shown["curve"].dump(), "[[1.0,4.0],[2.0,2.0]]");
  ASSERT_EQ(shown["task_list"].size(), 1u);
  EXPECT_EQ(shown["task_list"][0]["trials"], 3);
  // The other session's failure is not among them, nor what did not fail.
  ASSERT_EQ(shown["failures"].size(), 1u);
  EXPECT_EQ(shown["failures"][0]["cause"], "signal #");
  EXPECT_EQ(shown["failures"][0]["count"], 1);
  const std::string failed = shown["failures"][0]["examples"][0]["id"];
  EXPECT_EQ(failed, Hash128(6, 2).ToHex());
  const std::string attempt = "/api/v1/attempt?session=" + session + "&id=";
  const json candidate = Json(attempt + failed);
  EXPECT_EQ(candidate["trace"], "vectorize(s0.i1)\n");
  EXPECT_EQ(candidate["outcome"], "run_crashed");
  EXPECT_EQ(candidate["message"], "signal 11");
  EXPECT_EQ(Ask(honed_->page_port(), attempt + Hash128(6, 3).ToHex()).status, 404) << "it is ok";
  EXPECT_EQ(Ask(honed_->page_port(), attempt + Hash128(6, 4).ToHex()).status, 404) << "another's";
  const std::string workload = HashBytes(kWorkload).ToHex();
  const json best = Json("/api/v1/best?session=" + session + "&workload=" + workload);
  EXPECT_EQ(best["id"], Hash128(8, 3).ToHex());
  EXPECT_DOUBLE_EQ(best["median_us"], 2000);
  EXPECT_EQ(best["builder"], "1+22.1") << "another's faster one counts as screened";
  EXPECT_EQ(best["trace"], "unroll(s0.i1)\n");
}

TEST_F(HonedHttpTest, AnOpenSessionIsListedHoweverManyCameAfterIt) {
  honed_.reset();
  {
    const auto log = db::OpenLog(folder_ + "/tune.db", {.mode = db::OpenMode::kWrite}).value();
    const auto store = db::FarmStore::Open(*log).value();
    for (uint64_t i = 0; i < 35; ++i) {
      // The first one waits for a device.
      const auto state = i == 0 ? db::SessionState::kWaiting : db::SessionState::kFinished;
      db::FarmUnit unit{.changes = {db::AddFarmSession{Row({3, i}, state)}}};
      ASSERT_TRUE(store->Commit({&unit}).value().front().ok());
    }
  }
  Start();
  const json farm = Json("/api/v1/farm");
  ASSERT_EQ(farm["sessions"].size(), 31u);
  EXPECT_EQ(farm["sessions"][0]["id"], Hash128(3, 34).ToHex()) << "newest first";
  EXPECT_EQ(farm["sessions"][30]["id"], Hash128(3, 0).ToHex());
  EXPECT_EQ(farm["sessions"][30]["state"], "waiting");
}

TEST_F(HonedHttpTest, AMovedLogIsIllHealthUntilItIsBack) {
  EXPECT_EQ(HealthOf("hone.v1.Workers"), "\x08\x01");
  std::filesystem::rename(folder_ + "/tune.db", folder_ + "/moved.db");
  EXPECT_THAT(Until("/healthz", "moved"), HasSubstr("was moved or removed"));
  for (const int port : {honed_->metrics_port(), honed_->page_port()}) {
    EXPECT_EQ(Ask(port, "/healthz").status, 503);
  }
  EXPECT_THAT(Until("/metrics", "hone_log_writable 0\n"), HasSubstr("hone_log_writable 0\n"));
  for (const char* service : {"", "hone.v1.Workers", "hone.v1.Tuning"}) {
    AwaitHealth(service, "\x08\x02");
  }
  std::filesystem::rename(folder_ + "/moved.db", folder_ + "/tune.db");
  EXPECT_EQ(Until("/healthz", "ok\n"), "ok\n");
  AwaitHealth("hone.v1.Workers", "\x08\x01");
}

TEST_F(HonedHttpTest, ThePageIsForLoopbackAlone) {
  HonedOptions options;
  options.log_path = folder_ + "/other.db";
  options.listen = "127.0.0.1:0";
  options.transport = Transport::kPlaintext;
  options.page_listen = "0.0.0.0:0";
  const auto refused = Honed::Start(options, clock_, wall_clock_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("ssh -L"));
}

std::string HonedHttpTest::HealthOf(const std::string& service) const {
  grpc::GenericStub stub(grpc::CreateChannel("127.0.0.1:" + std::to_string(honed_->port()),
                                             grpc::InsecureChannelCredentials()));
  std::string bytes;
  if (!service.empty()) bytes = std::string("\x0a") + static_cast<char>(service.size()) + service;
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer reply;
  grpc::ClientContext context;
  std::promise<grpc::Status> ended;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &reply,
                 [&](grpc::Status status) { ended.set_value(std::move(status)); });
  const grpc::Status status = ended.get_future().get();
  std::vector<grpc::Slice> slices;
  (void)reply.Dump(&slices);
  std::string answer;
  for (const grpc::Slice& s : slices) {
    answer.append(reinterpret_cast<const char*>(s.begin()), s.size());
  }
  return status.ok() ? answer : status.error_message();
}

TEST_F(HonedHttpTest, AnswersTheHealthServiceOfGrpc) {
  for (const char* service : {"", "hone.v1.Workers", "hone.v1.Tuning"}) {
    EXPECT_EQ(HealthOf(service), "\x08\x01") << service;
  }
  EXPECT_NE(HealthOf("no.such.Service"), "\x08\x01");
}

TEST_F(HonedHttpTest, RefusedCallersAreCounted) {
  const std::string series = "hone_callers_refused_total{reason=\"identity\"}";
  EXPECT_THAT(Until("/metrics", series + " 0\n"), HasSubstr(series + " 0\n"));
  grpc::GenericStub stub(grpc::CreateChannel("127.0.0.1:" + std::to_string(honed_->port()),
                                             grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.AddMetadata("hone-name", "no name, nor ever one");
  const grpc::Slice empty;
  const grpc::ByteBuffer nothing(&empty, 1);
  grpc::ByteBuffer reply;
  std::promise<grpc::Status> ended;
  stub.UnaryCall(&context, "/hone.v1.Tuning/ListDevices", grpc::StubOptions(), &nothing, &reply,
                 [&](grpc::Status status) { ended.set_value(std::move(status)); });
  EXPECT_FALSE(ended.get_future().get().ok());
  EXPECT_THAT(Until("/metrics", series + " 1\n"), HasSubstr(series + " 1\n"));
}

}  // namespace
}  // namespace hone::server
