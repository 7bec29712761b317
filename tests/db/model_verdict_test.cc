#include "db/model_verdict.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "facts.h"

namespace hone::db {
namespace {

using ::testing::HasSubstr;

const Hash128 kA = TestWorkload(0).hash, kB = TestWorkload(1).hash, kC = TestWorkload(2).hash;

TEST(ModelHashTest, IsOfWorkloadsAndTheirCountsAlone) {
  const Hash128 hash = ModelHash({{kA, 3}, {kB, 1}});
  EXPECT_EQ(hash, ModelHash({{kB, 1}, {kA, 3}}));
  EXPECT_EQ(hash, ModelHash({{kA, 1}, {kB, 1}, {kA, 2}, {kC, 0}}));
  EXPECT_NE(hash, ModelHash({{kA, 3}, {kB, 2}}));
  EXPECT_NE(hash, ModelHash({{kA, 3}}));
  // The published vector of docs/formats/log.md.
  const Hash128 one = {0x0123456789abcdef, 0xfedcba9876543210}, two = {0, 1};
  EXPECT_EQ(ModelHash({{one, 2}, {two, 17}}).ToHex(), "a0beb3d11bed263d781b2fc8f954f190");
}

/// One for TestKey's target and device class.
ModelVerdict Verdict(int session) {
  return {.model = ModelHash({{kA, 1}}),
          .target = TestKey().target,
          .device_class = TestKey().device_class,
          .accuracy = TestKey().accuracy,
          .measurement_policy = TestKey().measurement_policy,
          .ratio = 1.2,
          .ratio_low = 1.1,
          .ratio_high = 1.3,
          .rounds = 9,
          .session = TestId("session", session)};
}

TEST(KeepsDefaultTest, TheNewestThatHasTheWorkloadInItDecides) {
  ModelVerdict lost = Verdict(1), put_back = Verdict(2), won = Verdict(3);
  lost.keeps_defaults = true;
  put_back.put_back = {kA};
  put_back.tuned = {kB};
  won.tuned = {kA};
  const auto keeps = [](std::vector<ModelVerdict> newest_first, int workload) {
    const ModelVerdict* by = KeepsDefault(newest_first, TestKey(workload));
    return by == nullptr ? Hash128{} : by->session;
  };
  EXPECT_EQ(keeps({}, 0), Hash128{});
  // A model that is not faster has all its defaults, also of kernels that were not looked at.
  for (const int workload : {0, 1, 2}) EXPECT_EQ(keeps({lost}, workload), lost.session);
  EXPECT_EQ(keeps({put_back, lost}, 0), put_back.session);
  EXPECT_EQ(keeps({put_back, lost}, 1), Hash128{});
  // The newer ones say nothing of c: it ran by default in them.
  EXPECT_EQ(keeps({won, put_back, lost}, 2), lost.session);
  EXPECT_EQ(keeps({won, put_back, lost}, 0), Hash128{});
  EXPECT_EQ(keeps({put_back, won}, 0), put_back.session);
}

TEST(KeepsDefaultTest, ExtensionsAreNoOtherTarget) {
  EXPECT_TRUE(SameButExtensions("cpu:avx512+vnni+bf16,threads=2", "cpu:avx512,threads=2"));
  EXPECT_TRUE(SameButExtensions("cpu:avx2+vnni,threads=1", "cpu:avx2,threads=1"));
  EXPECT_FALSE(SameButExtensions("cpu:avx512+vnni,threads=2", "cpu:avx512,threads=1"));
  EXPECT_FALSE(SameButExtensions("cpu:avx512,threads=2", "cpu:avx2,threads=2"));
  EXPECT_TRUE(SameButExtensions("cuda:sm_90a", "cuda:sm_90a"));
  EXPECT_FALSE(SameButExtensions("cuda:sm_90a", "cuda:sm_80"));
}

TEST(KeepsDefaultTest, OnlyVerdictsOfTheSameKeyCount) {
  ModelVerdict lost = Verdict(1);
  lost.keeps_defaults = true;
  const auto keeps = [](const ModelVerdict& verdict) {
    return KeepsDefault({&verdict, 1}, TestKey()) != nullptr;
  };
  EXPECT_TRUE(keeps(lost));
  ModelVerdict strict = lost, fast = lost, target = lost, device = lost, policy = lost;
  strict.accuracy = ir::AccuracyClass::kStrict;
  EXPECT_TRUE(keeps(strict)) << "its records serve this key, too";
  fast.accuracy = ir::AccuracyClass::kFast;
  EXPECT_FALSE(keeps(fast));
  target.target = "cpu:avx512,threads=64";
  EXPECT_FALSE(keeps(target));
  device.device_class = "another";
  EXPECT_FALSE(keeps(device));
  policy.measurement_policy = 99;
  EXPECT_FALSE(keeps(policy));
}

TEST(KeepsDefaultTest, ItsOwnAccuracyClassAndItsOwnLogGoFirst) {
  ModelVerdict lost = Verdict(1), won = Verdict(2);
  lost.keeps_defaults = true;
  won.tuned = {kA};
  // The older one is of the key's class, then of this log.
  lost.accuracy = ir::AccuracyClass::kStrict;
  EXPECT_EQ(KeepsDefault(std::vector{lost, won}, TestKey()), nullptr);
  lost.accuracy = won.accuracy;
  lost.merged = true;
  EXPECT_EQ(KeepsDefault(std::vector{lost, won}, TestKey()), nullptr);
  won.merged = true;
  EXPECT_NE(KeepsDefault(std::vector{lost, won}, TestKey()), nullptr);
}

// A verdict on how the batch runs says nothing of kernels, and the other way round.
TEST(OnSubjectTest, TheNewestOfTheKeyDecidesHowABatchOrBranchesRun) {
  using enum ModelVerdict::Subject;
  ModelVerdict each = Verdict(1), together = Verdict(2), model = Verdict(3), beside = Verdict(4),
               in_turn = Verdict(5);
  each.subject = together.subject = kBatch;
  beside.subject = in_turn.subject = kBranches;
  together.keeps_defaults = model.keeps_defaults = in_turn.keeps_defaults = true;
  for (const ModelVerdict& v : {each, together, beside, in_turn}) {
    const auto read = VerdictOf(EventOf(v), false);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->subject, v.subject);
    EXPECT_EQ(read->keeps_defaults, v.keeps_defaults);
    EXPECT_EQ(read->ratio, v.ratio);
  }
  EXPECT_EQ(OnSubject({}, TestKey(), kBatch), nullptr);
  EXPECT_EQ(OnSubject({model, beside}, TestKey(), kBatch), nullptr);
  EXPECT_EQ(OnSubject({model, together}, TestKey(), kBranches), nullptr);
  EXPECT_EQ(KeepsDefault({together}, TestKey()), nullptr);
  EXPECT_EQ(KeepsDefault({in_turn}, TestKey()), nullptr);
  const std::vector<ModelVerdict> verdicts = {together, model, beside, each, in_turn};
  EXPECT_EQ(OnSubject(verdicts, TestKey(), kBatch), &verdicts[0]);
  EXPECT_EQ(OnSubject(verdicts, TestKey(), kBranches), &verdicts[2]);
  EXPECT_EQ(KeepsDefault(verdicts, TestKey()), &verdicts[1]);
  RecordKey other = TestKey();
  other.device_class += "x";
  EXPECT_EQ(OnSubject(verdicts, other, kBatch), nullptr);
}

TEST(ModelVerdictTest, DamagedPayloadsAreNone) {
  ModelVerdict verdict = Verdict(1);
  verdict.tuned = {kA, kB};
  const Event event = EventOf(verdict);
  ASSERT_EQ(VerdictOf(event, false), verdict);
  for (size_t i = 0; i < event.payload.size(); ++i) {
    Event cut = event;
    cut.payload.resize(i);
    const auto read = VerdictOf(cut, false);
    // The device class is the rest of the line: cut short it is another one.
    if (read) {
      EXPECT_NE(read->device_class, verdict.device_class) << cut.payload;
    }
  }
  for (const char* payload : {"", " ", "x", "- - - - -"}) {
    Event bad = event;
    bad.payload = payload;
    EXPECT_EQ(VerdictOf(bad, false), std::nullopt) << payload;
  }
}

TEST(ModelVerdictTest, SaysWhyTheDefaultAnswers) {
  ModelVerdict verdict = Verdict(1);
  verdict.put_back = {kA};
  EXPECT_THAT(WhyDefault(verdict), HasSubstr("put back: in this model the default is faster"));
  verdict.keeps_defaults = true;
  verdict.ratio = 0.98, verdict.ratio_low = 0.96, verdict.ratio_high = 0.99;
  verdict.merged = true;
  EXPECT_THAT(WhyDefault(verdict), HasSubstr("0.98 x as fast [0.96, 0.99]"));
  EXPECT_THAT(WhyDefault(verdict), HasSubstr(TestId("session", 1).ToHex()));
  EXPECT_THAT(WhyDefault(verdict), HasSubstr("merged"));
}

}  // namespace
}  // namespace hone::db
