#include "proto/convert.h"

#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "base/status.h"
#include "hone/v1/farm.pb.h"
#include "proto/limits.h"

namespace hone::proto {
namespace {

using ::testing::HasSubstr;

constexpr Hash128 kToken{0x0123456789abcdef, 0xfedcba9876543210};

const std::string kSha256(64, 'b');
const Artifact kArtifact{.sha256 = kSha256, .bytes = 9};
const Artifact kNoArtifact{.outcome = measure::Outcome::kBuildFailed, .message = "no"};
const ArtifactChunk kChunk{kToken, kSha256, 9, 4, std::string("a\0b", 3)};

std::vector<WorkerMessage> WorkerMessages() {
  Hello hello{.protocol = 1, .builder_version = "1+22.1", .measurement_policy = 1};
  hello.program_version = "0.1.0";
  hello.instance = kToken;
  hello.device = {"cpu:0", "class", "a\nb", "cpu:avx2,threads=2", 2, int64_t{1} << 34};
  hello.device.driver = "Linux 6.1.0, microcode 0x1";
  hello.probes = Probes{1e11, 2e10, 0.01, 1};
  hello.labels = {{"rack", "7"}};
  hello.held = {{kToken, true}};
  WorkResult ok{.token = kToken, .outcome = measure::Outcome::kOk, .samples_ns = {5, 6, 7}};
  ok.build_ns = 10;
  ok.run_ns = 20;
  ok.noisy = true;
  WorkResult failed{
      .token = kToken, .outcome = measure::Outcome::kRunTimeout, .message = "too long"};
  WorkResult compared{.token = kToken, .outcome = measure::Outcome::kOk};
  compared.compared = {{measure::Outcome::kOk, "", {1, 2}},
                       {measure::Outcome::kWrongAnswer, "differs", {}}};
  return {hello,
          Heartbeat{{{kToken, false}}, 9},
          Started{kToken},
          ok,
          failed,
          compared,
          Returned{kToken, "why"},
          WorkerCredit{17},
          Draining{},
          Probes{1, 1e15, 0, 7},
          Built{kToken, {kArtifact, kNoArtifact}, 9},
          kChunk,
          Fetch{kToken, kSha256, 4}};
}

std::vector<ServerMessage> ServerMessages() {
  Grant grant{.token = kToken, .session = {1, 2}, .attempt = 3};
  grant.job = {.kind = JobKind::kCompare,
               .workload = "workload 1\n",
               .target = "cpu:avx512+vnni,threads=4",
               .traces = {"", "split(s0.i0, [8])"},
               .incumbent_ns = 5,
               .seed = 7,
               .rounds = 24};
  grant.start_by_ms = 1000;
  grant.run_by_ms = 2000;
  Grant build = grant, run = grant;
  build.kind = LeaseKind::kBuild;
  build.wanted = {2, 0};
  run.kind = LeaseKind::kRun;
  run.artifacts = {kArtifact, kNoArtifact, kArtifact};
  return {Welcome{200, {kToken}, {{5, 6}}},
          grant,
          build,
          run,
          kChunk,
          Acknowledgement{kToken, Verdict::kConflict, "other"},
          Revoke{kToken, "gone"},
          ServerCredit{64},
          Drain{"bye"},
          Probe{"by admin"}};
}

SessionSpec Spec() {
  SessionSpec spec{.model = "mlp", .model_hash = std::string(64, 'a')};
  spec.tasks = {{"workload 1\n", "matmul", 3, 1e6, 10}};
  spec.target = "cpu:avx2,threads=1";
  spec.trials = 100;
  spec.seed = UINT64_MAX;
  spec.priority = -5;
  spec.project = "vision";
  return spec;
}

TEST(Convert, EveryMessageComesBackAsItWent) {
  for (const WorkerMessage& message : WorkerMessages()) {
    v1::WorkerMessage wire;
    ToWire(message, &wire);
    const auto back = FromWire(wire);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, message);
  }
  for (const ServerMessage& message : ServerMessages()) {
    v1::ServerMessage wire;
    ToWire(message, &wire);
    const auto back = FromWire(wire);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, message);
  }
  EXPECT_EQ(DecodeSpec(EncodeSpec(Spec())).value(), Spec());
}

TEST(Convert, WhatIsOutOfBoundsIsRefusedByFieldName) {
  struct Case {
    void (*spoil)(v1::SessionSpec&);
    const char* field;
  };
  const Case cases[] = {
      {[](v1::SessionSpec& s) { s.set_model(""); }, "model:"},
      {[](v1::SessionSpec& s) { s.set_model("a\x01"); }, "model:"},
      {[](v1::SessionSpec& s) { s.clear_tasks(); }, "tasks:"},
      {[](v1::SessionSpec& s) { s.mutable_tasks(0)->set_count(0); }, "tasks.count:"},
      {[](v1::SessionSpec& s) { s.mutable_tasks(0)->set_flop(-1); }, "tasks.flop:"},
      {[](v1::SessionSpec& s) {
         s.mutable_tasks(0)->set_workload(std::string(kMaxWorkloadBytes + 1, 'x'));
       },
       "tasks.workload:"},
      {[](v1::SessionSpec& s) {
         for (size_t i = 0; i < kMaxWorkloads; ++i) *s.add_tasks() = s.tasks(0);
       },
       "tasks:"},
      {[](v1::SessionSpec& s) { s.set_target("cpu:native"); }, "target:"},
      {[](v1::SessionSpec& s) { s.set_seconds(0.0 / 0.0); }, "seconds:"},
      {[](v1::SessionSpec& s) { s.set_trials(-1); }, "trials:"},
      {[](v1::SessionSpec& s) { s.set_trials(0); }, "one must limit"},
      {[](v1::SessionSpec& s) { s.set_accuracy(3); }, "accuracy:"},
      {[](v1::SessionSpec& s) { s.set_priority(101); }, "priority:"},
  };
  for (const Case& c : cases) {
    v1::SessionSpec wire;
    ToWire(Spec(), &wire);
    c.spoil(wire);
    const absl::Status refused = FromWire(wire).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << c.field;
    EXPECT_THAT(StatusMessage(refused), HasSubstr(c.field));
  }
}

TEST(Convert, ProbesAreOfThisWorld) {
  for (const Probes& bad : {Probes{0, 1, 0, 1}, Probes{1, 2e15, 0, 1}, Probes{1, 1, -1, 1},
                            Probes{1, 1, 0, 0}, Probes{0.0 / 0.0, 1, 0, 1}}) {
    v1::WorkerMessage wire;
    ToWire(WorkerMessage(bad), &wire);
    const absl::Status refused = FromWire(wire).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(StatusMessage(refused), HasSubstr("probes."));
  }
  DeviceInfo info{.worker = "w1"};
  info.device = {"cpu:0", "class", "f", "cpu:avx2,threads=2", 2, 5, "Linux"};
  info.program_version = "0.1.0";
  for (const bool probed : {false, true}) {
    if (probed) info.probes = Probes{1e11, 2e10, 0.01, 1};
    v1::DeviceInfo wire;
    ToWire(info, &wire);
    EXPECT_EQ(FromWire(wire).value(), info);
  }
}

TEST(Convert, ResultsMustFitTheirOutcome) {
  for (const WorkResult& bad :
       {WorkResult{.token = kToken, .outcome = measure::Outcome::kOk},
        WorkResult{.token = kToken, .outcome = measure::Outcome::kRunCrashed, .samples_ns = {1}},
        WorkResult{.token = kToken, .outcome = measure::Outcome::kOk, .samples_ns = {0}},
        WorkResult{.token = kToken,
        .outcome = measure::Outcome::kOk,
        .samples_ns = std::vector<int64_t>(kMaxSamples + 1, 1)}}) {
    v1::WorkerMessage wire;
    ToWire(WorkerMessage(bad), &wire);
    EXPECT_EQ(FromWire(wire).status().code(), absl::StatusCode::kInvalidArgument);
  }
  v1::WorkerMessage wire;
  ToWire(WorkerMessage(Started{kToken}), &wire);
  wire.mutable_started()->set_token("short");
  EXPECT_THAT(StatusMessage(FromWire(wire).status()), HasSubstr("token: 5 bytes"));
}

TEST(Convert, ArtifactsAreBounded) {
  const auto refused = [](const WorkerMessage& message, const std::string& field) {
    v1::WorkerMessage wire;
    ToWire(message, &wire);
    const absl::Status status = FromWire(wire).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_THAT(StatusMessage(status), HasSubstr(field));
  };
  ArtifactChunk chunk = kChunk;
  chunk.total_bytes = kMaxArtifactBytes + 1;
  refused(chunk, "total_bytes:");
  chunk = kChunk;
  chunk.offset = 7;
  refused(chunk, "data: goes on");
  chunk = kChunk;
  chunk.sha256 = "beef";
  refused(chunk, "sha256:");
  chunk = kChunk;
  chunk.total_bytes = kMaxArtifactBytes;
  chunk.data.assign(kArtifactChunkBytes + 1, 'x');
  refused(chunk, "data:");
  Built built{kToken, {kArtifact}, 0};
  built.artifacts[0].bytes = 0;
  refused(built, "artifact.bytes:");
  built.artifacts = {kNoArtifact};
  built.artifacts[0].sha256 = kSha256;
  refused(built, "artifact.sha256:");
  built.artifacts.assign(kMaxArtifacts + 1, kArtifact);
  refused(built, "artifacts:");
  refused(Fetch{kToken, kSha256, kMaxArtifactBytes}, "offset:");
}

TEST(Convert, AGrantHasWhatItsKindNeeds) {
  const auto refused = [](Grant grant, const std::string& field) {
    v1::ServerMessage wire;
    ToWire(ServerMessage(grant), &wire);
    EXPECT_THAT(StatusMessage(FromWire(wire).status()), HasSubstr(field));
  };
  Grant grant{.token = kToken, .session = {1, 2}, .attempt = 3};
  grant.job = {.workload = "workload 1\n", .target = "cpu:avx2,threads=1", .traces = {""}};
  grant.start_by_ms = grant.run_by_ms = 1;
  v1::ServerMessage old;
  ToWire(ServerMessage(grant), &old);
  old.mutable_grant()->clear_kind();
  EXPECT_EQ(std::get<Grant>(FromWire(old).value()).kind, LeaseKind::kBoth);
  grant.kind = LeaseKind::kBuild;
  refused(grant, "wanted:");
  grant.wanted = {1, 1};
  refused(grant, "wanted: 1 twice");
  grant.wanted = {2};
  refused(grant, "wanted:");
  grant.wanted = {0};
  grant.artifacts = {kArtifact, kArtifact};
  refused(grant, "artifacts: 2");
  grant.kind = LeaseKind::kRun;
  refused(grant, "wanted:");
  grant.wanted.clear();
  grant.artifacts.pop_back();
  refused(grant, "artifacts: 1");
}

TEST(Convert, EqualResultsHaveEqualDigestsAndOthersDoNot) {
  const WorkResult a{.token = kToken, .outcome = measure::Outcome::kOk, .samples_ns = {5, 6}};
  WorkResult b = a;
  b.token = {9, 9};
  EXPECT_EQ(ResultDigest(a), ResultDigest(b));
  b.samples_ns = {56};
  EXPECT_NE(ResultDigest(a), ResultDigest(b));
  SessionSpec spec = Spec();
  const std::string digest = SpecDigest(spec);
  spec.tasks[0].count = 4;
  EXPECT_NE(SpecDigest(spec), digest);
}

TEST(Convert, TextsAreCutAtWholeCharactersAndMadeValid) {
  WorkResult failed{.token = kToken, .outcome = measure::Outcome::kBuildFailed};
  failed.message.assign(kMaxTextBytes - 1, 'x');
  failed.message += "\xc3\xa9 and more";
  v1::WorkerMessage wire;
  ToWire(WorkerMessage(failed), &wire);
  EXPECT_EQ(wire.result().message(), std::string(kMaxTextBytes - 1, 'x'));
  failed.message = "bad \xff\xc0 byte \xed\xa0\x80";
  ToWire(WorkerMessage(failed), &wire);
  EXPECT_EQ(wire.result().message(), "bad ?? byte ???");
  std::string bytes;
  EXPECT_TRUE(wire.SerializeToString(&bytes));
}

TEST(Convert, RandomBytesNeverCrash) {
  const google::protobuf::LogSilencer silencer;
  Random random(5);
  std::vector<std::string> seeds;
  for (const WorkerMessage& message : WorkerMessages()) {
    v1::WorkerMessage wire;
    ToWire(message, &wire);
    seeds.push_back(wire.SerializeAsString());
  }
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = random.Pick(seeds);
    for (uint64_t k = random.Below(4); k > 0 && !bytes.empty(); --k) {
      bytes[static_cast<size_t>(random.Below(bytes.size()))] = static_cast<char>(random.Next());
    }
    if (random.Chance(0.2)) bytes.resize(static_cast<size_t>(random.Below(bytes.size() + 1)));
    v1::WorkerMessage wire;
    if (!wire.ParseFromString(bytes)) continue;
    const auto message = FromWire(wire);
    if (!message.ok()) continue;
    // What is accepted can be said again, and means the same.
    ++accepted;
    v1::WorkerMessage again;
    ToWire(*message, &again);
    EXPECT_EQ(FromWire(again).value(), *message);
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace hone::proto
