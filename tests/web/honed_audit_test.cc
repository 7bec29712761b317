#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/clock.h"
#include "base/core/random_id.h"
#include "base/versions.h"
#include "db/farm_store.h"
#include "proto/farm_service.h"
#include "server/ca.h"
#include "server/honed.h"

// What a whole honed writes into its audit, asked over real gRPC.
namespace hone::server {
namespace {

using ::testing::HasSubstr;

class HonedAuditTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "/hone-audit-XXXXXX";
    ASSERT_NE(::mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override {
    honed_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Start() {
    HonedOptions options;
    options.log_path = folder_ + "/tune.db";
    options.listen = "127.0.0.1:0";
    options.transport = Transport::kPlaintext;
    options.builder_version = "1+22.1";
    options.versions = "{}";
    options.ca_folder = folder_ + "/ca";
    auto honed = Honed::Start(options, clock_, wall_clock_);
    ASSERT_TRUE(honed.ok()) << honed.status();
    honed_ = *std::move(honed);
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(honed_->port()),
                                   grpc::InsecureChannelCredentials());
    tuning_ = v1::Tuning::NewStub(channel_);
  }
  /// "ACTION SUBJECT by ACTOR", oldest first, as any reader of the log sees it.
  std::vector<std::string> Audit() const {
    const auto log = db::OpenLog(folder_ + "/tune.db", {});
    EXPECT_TRUE(log.ok()) << log.status();
    std::vector<std::string> lines;
    const auto store = db::FarmStore::Open(**log).value();
    const std::vector<db::FarmAudit> audit = store->Audit(1000).value();
    for (const db::FarmAudit& e : audit) {
      lines.insert(lines.begin(), e.action + " " + e.subject + " by " + e.actor);
      EXPECT_GT(e.at_ms, 0);
    }
    return lines;
  }
  /// Waits until the audit has so many lines.
  std::vector<std::string> AuditOf(size_t lines) const {
    for (int i = 0; i < 100 && Audit().size() < lines; ++i) clock_.SleepNs(50'000'000);
    return Audit();
  }
  void Issue(const std::string& name) const {
    const absl::Status issued = server::Issue({.ca_folder = folder_ + "/ca",
                                               .role = CallerRole::kMeasure,
                                               .name = name,
                                               .out_folder = folder_ + "/" + name,
                                               .now_unix_s = 1'900'000'000,
                                               .actor = "eve"});
    ASSERT_TRUE(issued.ok()) << issued;
  }
  static proto::Hello MakeHello() {
    proto::Hello hello{.protocol = kProtocolVersion,
                       .builder_version = "1+22.1",
                       .measurement_policy = kCpuVersions.measurement_policy};
    hello.instance = {1, 2};
    hello.device = {.name = "cpu:0",
                    .device_class = "class",
                    .fingerprint = "f",
                    .target = "cpu:avx2,threads=1",
                    .cores = 1,
                    .driver = "Linux"};
    return hello;
  }
  /// Calls as alice.
  template <typename Call>
  absl::Status As(const Call& call) const {
    grpc::ClientContext context;
    context.AddMetadata("hone-name", "alice");
    return proto::FromGrpc(call(&context));
  }

  const SystemMonotonicClock clock_;
  const SystemWallClock wall_clock_;
  std::string folder_;
  std::unique_ptr<Honed> honed_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Tuning::Stub> tuning_;
};

TEST_F(HonedAuditTest, WhatIsIssuedBeforeAndWhileItRunsIsThereOnce) {
  ASSERT_TRUE(InitCa(folder_ + "/ca", 1'900'000'000, "eve").ok());
  Issue("w1");
  Start();
  const std::vector<std::string> two = {"init-ca authority by eve",
                                        "issue spiffe://hone/measure/w1 by eve"};
  EXPECT_EQ(AuditOf(2), two);
  Issue("w2");
  std::vector<std::string> three = two;
  three.push_back("issue spiffe://hone/measure/w2 by eve");
  EXPECT_EQ(AuditOf(3), three);
  honed_.reset();
  Issue("w3");
  Start();
  three.push_back("issue spiffe://hone/measure/w3 by eve");
  EXPECT_EQ(AuditOf(4), three);
}

TEST_F(HonedAuditTest, AProbeIsAskedForAndTold) {
  Start();
  const auto workers = v1::Workers::NewStub(channel_);
  grpc::ClientContext stream_context;
  stream_context.AddMetadata("hone-name", "w1");
  const auto stream = workers->Work(&stream_context);
  v1::WorkerMessage wire;
  proto::ToWire(proto::WorkerMessage(MakeHello()), &wire);
  ASSERT_TRUE(stream->Write(wire));
  v1::ServerMessage heard;
  ASSERT_TRUE(stream->Read(&heard));
  v1::SetDeviceRequest request;
  request.set_worker("w1");
  request.set_device("cpu:0");
  request.set_action(v1::DEVICE_ACTION_PROBE);
  request.set_request_id("p1");
  v1::SetDeviceReply reply;
  ASSERT_TRUE(As([&](auto* context) { return tuning_->SetDevice(context, request, &reply); }).ok());
  while (heard.kind_case() != v1::ServerMessage::kProbe) ASSERT_TRUE(stream->Read(&heard));
  EXPECT_EQ(heard.probe().reason(), "by alice");
  proto::ToWire(proto::WorkerMessage(proto::Probes{1e11, 2e10, 0.01, 2}), &wire);
  ASSERT_TRUE(stream->Write(wire));
  v1::ListDevicesReply devices;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(
        As([&](auto* context) { return tuning_->ListDevices(context, {}, &devices); }).ok());
    if (devices.devices(0).has_probes()) break;
    clock_.SleepNs(20'000'000);
  }
  EXPECT_EQ(devices.devices(0).probes().flop_per_second(), 1e11);
  EXPECT_EQ(devices.devices(0).device().driver(), "Linux");
  EXPECT_EQ(Audit(), std::vector<std::string>{"probe w1/cpu:0 by spiffe://hone/admin/alice"});
  stream_context.TryCancel();
  (void)stream->Finish();
}

TEST_F(HonedAuditTest, RevocationDrainCancelAndPublishAreThere) {
  Start();
  const auto workers = v1::Workers::NewStub(channel_);
  grpc::ClientContext stream_context;
  stream_context.AddMetadata("hone-name", "w1");
  const auto stream = workers->Work(&stream_context);
  v1::WorkerMessage wire;
  proto::ToWire(proto::WorkerMessage(MakeHello()), &wire);
  ASSERT_TRUE(stream->Write(wire));
  v1::ServerMessage welcome;
  ASSERT_TRUE(stream->Read(&welcome));

  const auto set_device = [&](v1::DeviceAction action, const std::string& id,
                              const std::string& device = "cpu:0") {
    v1::SetDeviceRequest request;
    request.set_worker("w1");
    request.set_device(device);
    request.set_action(action);
    request.set_request_id(id);
    v1::SetDeviceReply reply;
    return As([&](auto* context) { return tuning_->SetDevice(context, request, &reply); });
  };
  EXPECT_TRUE(set_device(v1::DEVICE_ACTION_DRAIN, "d1").ok());
  EXPECT_TRUE(set_device(v1::DEVICE_ACTION_DRAIN, "d1").ok()) << "a retry";
  EXPECT_TRUE(set_device(v1::DEVICE_ACTION_UNDRAIN, "d2").ok());
  EXPECT_FALSE(set_device(v1::DEVICE_ACTION_DRAIN, "d3", "cpu:9").ok()) << "what fails is no deed";

  proto::SessionSpec spec{.model = "m", .model_hash = std::string(64, 'a')};
  spec.tasks = {
      {"workload 1\nx0: f32[8,16] input range(-1,1)\nx1: f32[16,4] constant\n"
       "s0: f32[8,4] output = sum[r0:16] (x0[i0, r0] * x1[r0, i1])\n",
       "product", 1, 1024, 1}};
  spec.target = "cpu:avx2,threads=1";
  spec.device_class = "of no worker";
  spec.trials = 5;
  v1::StartSessionRequest start;
  proto::ToWire(spec, start.mutable_spec());
  start.set_request_id("s1");
  v1::StartSessionReply started;
  ASSERT_TRUE(
      As([&](auto* context) { return tuning_->StartSession(context, start, &started); }).ok());
  v1::CancelSessionRequest cancel;
  cancel.set_session(started.session());
  cancel.set_request_id("c1");
  v1::CancelSessionReply cancelled;
  EXPECT_TRUE(
      As([&](auto* context) { return tuning_->CancelSession(context, cancel, &cancelled); }).ok());

  std::string digest;
  EXPECT_TRUE(As([&](auto* context) {
                const auto chunks = tuning_->Snapshot(context, {});
                for (v1::SnapshotChunk chunk; chunks->Read(&chunk);) digest = chunk.sha256();
                return chunks->Finish();
              }).ok());
  EXPECT_EQ(digest.size(), 64u);

  v1::RevokeRequest revoke;
  revoke.set_identity("spiffe://hone/measure/w1");
  revoke.set_request_id("r1");
  v1::RevokeReply revoked;
  EXPECT_TRUE(As([&](auto* context) { return tuning_->Revoke(context, revoke, &revoked); }).ok());
  const std::string session = proto::IdFromBytes(started.session(), "session")->ToHex();
  EXPECT_EQ(Audit(), (std::vector<std::string>{
                         "drain w1/cpu:0 by spiffe://hone/admin/alice",
                         "undrain w1/cpu:0 by spiffe://hone/admin/alice",
                         "cancel " + session + " by spiffe://hone/submit/alice",
                         "publish sha256:" + digest + " by spiffe://hone/submit/alice",
                         "revoke spiffe://hone/measure/w1 by spiffe://hone/admin/alice"}));
  EXPECT_FALSE(stream->Read(&welcome) && stream->Read(&welcome) && stream->Read(&welcome))
      << "the revoked stream ends";
  EXPECT_THAT(stream->Finish().error_message(), HasSubstr("revoked"));
}

}  // namespace
}  // namespace hone::server
