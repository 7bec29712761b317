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

std::vector<WorkerMessage> WorkerMessages() {
  Hello hello{.protocol = 1, .builder_version = "1+22.1", .measurement_policy = 1};
  hello.program_version = "0.1.0";
  hello.instance = kToken;
  hello.device = {"cpu:0", "class", "a\nb", "cpu:avx2,threads=2", 2, int64_t{1} << 34};
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
  return {hello,    Heartbeat{{{kToken, false}}, 9}, Started{kToken},  ok,        failed,
          compared, Returned{kToken, "why"},         WorkerCredit{17}, Draining{}};
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
  return {Welcome{200, {kToken}, {{5, 6}}},
          grant,
          Acknowledgement{kToken, Verdict::kConflict, "other"},
          Revoke{kToken, "gone"},
          ServerCredit{64},
          Drain{"bye"}};
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
