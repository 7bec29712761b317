#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "db/farm_store.h"
#include "proto/convert.h"
#include "server/honed.h"
#include "tests/web/http_client.h"

// A whole honed, asked over real HTTP and real gRPC.
namespace hone::server {
namespace {

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

  const SystemMonotonicClock clock_;
  const SystemWallClock wall_clock_;
  std::string folder_;
  std::unique_ptr<Honed> honed_;
};

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

// grpc.health.v1 by its wire format: the request's field 1 is the service's name, the answer's
// field 1 its state (1: serving).
TEST_F(HonedHttpTest, AnswersTheHealthServiceOfGrpc) {
  grpc::GenericStub stub(grpc::CreateChannel("127.0.0.1:" + std::to_string(honed_->port()),
                                             grpc::InsecureChannelCredentials()));
  const auto check = [&](const std::string& service) {
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
  };
  for (const char* service : {"", "hone.v1.Workers", "hone.v1.Tuning"}) {
    EXPECT_EQ(check(service), "\x08\x01") << service;
  }
  EXPECT_NE(check("no.such.Service"), "\x08\x01");
}

TEST_F(HonedHttpTest, RefusedCallersAreCounted) {
  const std::string series = "hone_callers_refused_total{why=\"identity\"}";
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
