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
  hello.probes = Probes{1e11, 2e10, 0.01, 1, 4e11, 2e11, {{1 << 20, 1e12}, {1 << 24, 1e11}}};
  hello.labels = {{"rack", "7"}};
  hello.held = {{kToken, true}};
  hello.sandbox_gap = "no Landlock";
  WorkResult ok{.token = kToken, .outcome = measure::Outcome::kOk, .samples_ns = {5, 6, 7}};
  ok.build_ns = 10;
  ok.run_ns = 20;
  ok.noisy = true;
  WorkResult on_part = ok;
  on_part.part_ns = 5;
  on_part.part = 0.125;
  WorkResult failed{
      .token = kToken, .outcome = measure::Outcome::kRunTimeout, .message = "too long"};
  WorkResult compared{.token = kToken, .outcome = measure::Outcome::kOk};
  compared.compared = {{measure::Outcome::kOk, "", {1, 2}},
                       {measure::Outcome::kWrongAnswer, "differs", {}}};
  return {hello,
          Heartbeat{{{kToken, false}}, 9},
          Started{kToken},
          ok,
          on_part,
          failed,
          compared,
          Returned{kToken, "why"},
          WorkerCredit{17},
          Draining{},
          Probes{1, 1e15, 0, 7},
          DeviceLost{"process 7 does not end"},
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
  grant.job.part_ns = 4'000'000;
  grant.job.part_ratio = 1.25;
  grant.job.both_ways = true;
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
  for (const Probes& bad :
       {Probes{0, 1, 0, 1}, Probes{1, 2e15, 0, 1}, Probes{1, 1, -1, 1}, Probes{1, 1, 0, 0},
        Probes{0.0 / 0.0, 1, 0, 1}, Probes{1, 1, 0, 1, -1}, Probes{1, 1, 0, 1, 0, 1e19},
        Probes{1, 1, 0, 1, 0, 0, {{5, 1}, {5, 1}}}, Probes{1, 1, 0, 1, 0, 0, {{5, 0}}},
        Probes{1, 1, 0, 1, 0, 0, std::vector(9, measure::MemoryLevel{5, 1})}}) {
    v1::WorkerMessage wire;
    ToWire(WorkerMessage(bad), &wire);
    const absl::Status refused = FromWire(wire).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(StatusMessage(refused), HasSubstr("probes."));
  }
  DeviceInfo info{.worker = "w1"};
  info.device = {"cpu:0", "class", "f", "cpu:avx2,threads=2", 2, 5, "Linux"};
  info.program_version = "0.1.0";
  info.role = WorkerRole::kBoth;
  for (const bool probed : {false, true}) {
    if (probed) info.probes = Probes{1e11, 2e10, 0.01, 1};
    v1::DeviceInfo wire;
    ToWire(info, &wire);
    EXPECT_EQ(FromWire(wire).value(), info);
  }
}

TEST(Convert, AReasonOfALostDeviceIsBounded) {
  v1::WorkerMessage wire;
  ToWire(WorkerMessage(DeviceLost{std::string(kMaxTextBytes + 1, 'x')}), &wire);
  EXPECT_EQ(wire.device_lost().reason().size(), kMaxTextBytes) << "it is cut, and said";
  EXPECT_TRUE(FromWire(wire).ok());
  wire.mutable_device_lost()->mutable_reason()->push_back('x');
  const absl::Status refused = FromWire(wire).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusMessage(refused), HasSubstr("reason:"));
}

// A worker of a later build, whose protocol has the same number, may say what is not known here.
TEST(Convert, AMessageOfALaterKindIsAnErrorAndNoMore) {
  v1::WorkerMessage wire;
  const std::string later("\xfa\x3e\x02\x08\x01", 5);  // field 1007, a message
  ASSERT_TRUE(wire.ParseFromString(later));
  const absl::Status refused = FromWire(wire).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusMessage(refused), HasSubstr("no known kind"));
}

TEST(Convert, ADeviceHasItsWorkersLabels) {
  DeviceInfo info{.worker = "w1", .role = WorkerRole::kRun, .labels = {{"rack", "7"}, {"row", ""}}};
  info.device = {"cpu:0", "class", "f", "cpu:avx2,threads=2", 2, 5, "Linux"};
  v1::DeviceInfo wire;
  ToWire(info, &wire);
  EXPECT_EQ(FromWire(wire).value(), info);
  (*wire.mutable_labels())["row"] = std::string(kMaxNameBytes + 1, 'x');
  EXPECT_THAT(StatusMessage(FromWire(wire).status()), HasSubstr("labels:"));
  (*wire.mutable_labels())["row"] = "";
  for (size_t i = 0; i <= kMaxLabels; ++i) (*wire.mutable_labels())[std::to_string(i)] = "";
  EXPECT_THAT(StatusMessage(FromWire(wire).status()), HasSubstr("labels:"));
}

// One that holds leases of an earlier start and has not come back: the rest of the list is shown.
TEST(Convert, ADeviceThatWasNotSeenSinceTheStartHasItsNameAlone) {
  DeviceInfo info{.worker = "w1", .leases = 2};
  info.device.name = "cpu:0";
  v1::DeviceInfo wire;
  ToWire(info, &wire);
  const auto back = FromWire(wire);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, info);
}

TEST(Convert, AFingerprintIsNeitherEmptyNorEndless) {
  for (const size_t size : {size_t{0}, size_t{1}, kMaxTextBytes, kMaxTextBytes + 1}) {
    v1::WorkerMessage wire;
    ToWire(WorkerMessages().front(), &wire);
    wire.mutable_hello()->mutable_device()->set_fingerprint(std::string(size, 'f'));
    const absl::Status status = FromWire(wire).status();
    EXPECT_EQ(status.ok(), size > 0 && size <= kMaxTextBytes) << size;
    if (!status.ok()) {
      EXPECT_THAT(StatusMessage(status), HasSubstr("device.fingerprint:"));
    }
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
  chunk.total_bytes = kMaxPackageBytes + 1;
  refused(chunk, "total_bytes:");
  chunk = kChunk;
  chunk.offset = 7;
  refused(chunk, "data: goes on");
  chunk = kChunk;
  chunk.sha256 = "beef";
  refused(chunk, "sha256:");
  chunk = kChunk;
  chunk.total_bytes = kMaxPackageBytes;
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
  refused(Fetch{kToken, kSha256, kMaxPackageBytes}, "offset:");
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
  b.part_ns = 5;
  EXPECT_NE(ResultDigest(a), ResultDigest(b));
  b = a;
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

TEST(Convert, NothingThatSteersATerminalComesIn) {
  v1::WorkerMessage wire;
  ToWire(WorkerMessage(Returned{kToken, "x"}), &wire);
  wire.mutable_returned()->set_reason("\x1b]0;mine\x07 \xc2\x9b\n\tgoes on \xc3\xa9");
  EXPECT_EQ(std::get<Returned>(FromWire(wire).value()).reason, "?]0;mine? ?\n\tgoes on \xc3\xa9");
  // Nor does it go out: what a worker keeps of its own words is what honed has of them.
  ToWire(WorkerMessage(Returned{kToken, "\x1b]0;mine\x07"}), &wire);
  EXPECT_EQ(wire.returned().reason(), "?]0;mine?");
  for (void (*spoil)(v1::SessionSpec&) :
       {+[](v1::SessionSpec& s) { s.set_project("a\x1b"); },
        +[](v1::SessionSpec& s) { s.set_device_class("a\n"); },
        +[](v1::SessionSpec& s) { s.set_model_hash("ab"); },
        +[](v1::SessionSpec& s) { s.set_model_hash(std::string(64, 'x')); },
        +[](v1::SessionSpec& s) {
          // A client does not make another project of it.
          SessionSpec own = Spec();
          own.project = std::string(kMaxNameBytes + 1, 'a');
          ToWire(own, &s);
        },
        +[](v1::SessionSpec& s) { s.set_until_unix_ms(kMaxUnixMs + 1); }}) {
    v1::SessionSpec spec;
    ToWire(Spec(), &spec);
    spoil(spec);
    EXPECT_EQ(FromWire(spec).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Convert, ACreditIsBounded) {
  v1::WorkerMessage wire;
  ToWire(WorkerMessage(WorkerCredit{kMaxCredit}), &wire);
  EXPECT_TRUE(FromWire(wire).ok());
  wire.mutable_credit()->set_leases(INT64_MAX);
  EXPECT_THAT(StatusMessage(FromWire(wire).status()), HasSubstr("leases:"));
}

/// Bytes of a message of the wire.
template <typename Wire, typename Value>
std::string BytesOf(const Value& value) {
  Wire wire;
  ToWire(value, &wire);
  return wire.SerializeAsString();
}

/// Spoils the bytes of these messages again and again: nothing crashes, and what is accepted can be
/// said again, and means the same.
template <typename Wire>
void Fuzz(const std::vector<std::string>& seeds, uint64_t seed, int least_accepted) {
  const google::protobuf::LogSilencer silencer;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = random.Pick(seeds);
    for (uint64_t k = random.Below(4); k > 0 && !bytes.empty(); --k) {
      bytes[static_cast<size_t>(random.Below(bytes.size()))] = static_cast<char>(random.Next());
    }
    if (random.Chance(0.2)) bytes.resize(static_cast<size_t>(random.Below(bytes.size() + 1)));
    Wire wire;
    if (!wire.ParseFromString(bytes)) continue;
    const auto value = FromWire(wire);
    if (!value.ok()) continue;
    ++accepted;
    Wire again;
    ToWire(*value, &again);
    const auto back = FromWire(again);
    ASSERT_TRUE(back.ok()) << back.status() << again.DebugString();
    // As bytes: a number that is none equals nothing.
    EXPECT_EQ(BytesOf<Wire>(*back), again.SerializeAsString()) << again.DebugString();
  }
  EXPECT_GT(accepted, least_accepted);
}

TEST(ConvertFuzz, WorkerMessages) {
  std::vector<std::string> seeds;
  for (const WorkerMessage& m : WorkerMessages()) seeds.push_back(BytesOf<v1::WorkerMessage>(m));
  Fuzz<v1::WorkerMessage>(seeds, 5, 1000);
}

TEST(ConvertFuzz, ServerMessages) {
  std::vector<std::string> seeds;
  for (const ServerMessage& m : ServerMessages()) seeds.push_back(BytesOf<v1::ServerMessage>(m));
  Fuzz<v1::ServerMessage>(seeds, 6, 1000);
}

TEST(ConvertFuzz, Sessions) {
  SessionInfo info{.id = kToken, .owner = "alice", .project = "p", .reason = "why", .model = "mlp"};
  info.target = "cpu:avx2,threads=1";
  info.created_ms = 1'900'000'000'000;
  info.attempts = 7;
  Fuzz<v1::SessionSpec>({BytesOf<v1::SessionSpec>(Spec())}, 7, 1000);
  Fuzz<v1::SessionInfo>({BytesOf<v1::SessionInfo>(info)}, 8, 1000);
  using Kind = SessionEvent::Kind;
  std::vector<std::string> events;
  for (const SessionEvent& e :
       {SessionEvent{.kind = Kind::kState, .info = info},
        SessionEvent{.kind = Kind::kProposed, .sequence = 5, .attempt = 3, .proposer = "evolution"},
        SessionEvent{.kind = Kind::kMeasured, .sequence = 6, .attempt = 3, .median_ns = 12.5},
        SessionEvent{.kind = Kind::kDecided, .replaced = true, .default_ns = 9, .best_ns = 8},
        SessionEvent{.kind = Kind::kEnded, .sequence = 9, .info = info}}) {
    events.push_back(BytesOf<v1::SessionEvent>(e));
  }
  Fuzz<v1::SessionEvent>(events, 9, 1000);
}

TEST(ConvertFuzz, RecordsAndDevices) {
  db::RankedRecord ranked;
  db::TuningRecord& r = ranked.record;
  r.id = kToken;
  r.key = {.workload = kToken, .target = "cpu:avx2,threads=1", .device_class = "class"};
  r.key.measurement_policy = 1;
  r.device = r.session = kToken;
  r.trace = "split(s0.i0, [8])";
  r.trace_version = 1;
  r.builder_version = "1+22.1";
  r.median_ns = 10;
  r.low_ns = 9;
  r.high_ns = 11;
  r.created_ms = 5;
  Fuzz<v1::Record>({BytesOf<v1::Record>(ranked)}, 10, 500);
  const FindRecords find{
      .key = r.key, .builder_version = "1+22.1", .workload_text = "w", .limit = 9, .model = kToken};
  Fuzz<v1::FindRecordsRequest>({BytesOf<v1::FindRecordsRequest>(find)}, 11, 500);
  const db::ModelVerdict verdict{.model = kToken,
                                 .target = r.key.target,
                                 .device_class = "class AS w/0",
                                 .keeps_defaults = true,
                                 .default_ns = 10,
                                 .ratio = 0.98,
                                 .rounds = 5,
                                 .tuned = {kToken},
                                 .session = kToken,
                                 .merged = true};
  Fuzz<v1::ModelVerdict>({BytesOf<v1::ModelVerdict>(verdict)}, 13, 500);
  v1::ModelVerdict wire;
  ToWire(verdict, &wire);
  EXPECT_EQ(FromWire(wire).value(), verdict);
  DeviceInfo device{.worker = "w1"};
  device.device = {"cpu:0", "class", "f", "cpu:avx2,threads=2", 2, 5, "Linux"};
  device.probes = Probes{1e11, 2e10, 0.01, 1};
  device.role = WorkerRole::kRun;
  Fuzz<v1::DeviceInfo>({BytesOf<v1::DeviceInfo>(device)}, 12, 500);
}

}  // namespace
}  // namespace hone::proto
