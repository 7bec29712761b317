#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/server/farm_harness.h"

// Times that are too good: where they are measured again, and what becomes of them when nobody can.
namespace hone::server {
namespace {

using measure::Outcome;
constexpr int64_t kMs = FarmHarness::kMs;
constexpr int64_t kSecond = FarmHarness::kSecond;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kComparison = 1 << 20;

/// Ran for `ns`, each trace of a comparison too.
auto Runs(std::vector<int64_t> samples_ns) {
  return [samples_ns](const proto::Grant& grant) {
    proto::WorkResult result{.outcome = Outcome::kOk};
    if (grant.job.kind == proto::JobKind::kCompare) {
      result.compared.assign(grant.job.traces.size(), {.samples_ns = samples_ns});
    } else {
      result.samples_ns = samples_ns;
    }
    return std::pair{50 * kMs, result};
  };
}

class FarmDoubtTest : public ::testing::Test {
 protected:
  FarmHarness::Device& Add(const std::string& name, std::vector<int64_t> samples_ns) {
    FarmHarness::Device& device = farm_.AddDevice(name);
    device.run = Runs(std::move(samples_ns));
    return device;
  }
  /// A session whose candidates take 800 ns at least, which asks for nothing by itself.
  FarmHarness::Asker& Session() {
    FarmHarness::Asker& asker = farm_.AddSession("s", "p", 0);
    asker.fastest_ns = 800;
    return asker;
  }
  void Compare(FarmHarness::Asker& asker) {
    farm_.farm.Submit(asker.id, kComparison,
                      {.kind = proto::JobKind::kCompare,
                       .workload = "w",
                       .target = FarmHarness::kTarget,
                       .traces = {"a", "b", ""},
                       .rounds = 5},
                      {.fastest_ns = asker.fastest_ns}, farm_.now_ns);
    ++asker.open;
  }
  void AskOne(FarmHarness::Asker& asker) {
    asker.backlog = 1;
    farm_.RunFor(100 * kMs);
    asker.backlog = 0;
  }
  DeviceState StateOf(const std::string& worker) const {
    for (const proto::DeviceInfo& info : farm_.farm.Devices()) {
      if (info.worker == worker) return info.state;
    }
    return DeviceState::kLost;
  }

  FarmHarness farm_;
};

TEST_F(FarmDoubtTest, AComparisonThatIsTooFastIsMeasuredElsewhereToo) {
  FarmHarness::Device& liar = Add("liar", {500, 500, 500});
  FarmHarness::Asker& asker = Session();
  Compare(asker);
  farm_.RunFor(10 * kMs);
  FarmHarness::Device& honest = Add("honest", {1000, 1010, 1020});
  farm_.RunFor(kSecond);
  EXPECT_EQ(liar.granted, 1);
  EXPECT_EQ(honest.granted, 1);
  ASSERT_EQ(asker.results.size(), 1u);
  EXPECT_EQ(asker.results[0].second.compared.at(0).samples_ns.front(), 1000);
  EXPECT_FALSE(asker.results[0].second.noisy);
  // Two of its candidates take others twice as long.
  EXPECT_EQ(StateOf("liar"), DeviceState::kQuarantined);
}

TEST_F(FarmDoubtTest, OneSampleThatIsTooFastIsEnough) {
  // Records rank by the lower end of their interval: of five samples the least.
  Add("liar", {100, 900, 900, 900, 900});
  FarmHarness::Asker& asker = Session();
  AskOne(asker);
  Add("honest", {900, 900, 900, 900, 900});
  EXPECT_EQ(farm_.farm.counters().held_back, 0) << "there was nobody else";
  asker.backlog = 4;
  farm_.RunFor(2 * kSecond);
  EXPECT_GT(farm_.farm.counters().held_back, 0);
  for (size_t i = 1; i < asker.results.size(); ++i) {
    EXPECT_EQ(asker.results[i].second.samples_ns.front(), 900);
  }
}

TEST_F(FarmDoubtTest, AnUnrelatedFaultOfTheOtherDeviceMakesNobodysWordCount) {
  FarmHarness::Device& other = Add("other", {1000});
  bool faulty = true;
  other.run = [&](const proto::Grant& grant) {
    if (!std::exchange(faulty, false)) return Runs({1000})(grant);
    return std::pair{10 * kMs, proto::WorkResult{.outcome = Outcome::kWorkerLost}};
  };
  FarmHarness::Asker& asker = Session();
  asker.backlog = 1;
  farm_.RunFor(20 * kMs);
  ASSERT_FALSE(faulty);
  Add("liar", {500});
  asker.backlog = 0;
  farm_.RunFor(5 * kSecond);
  ASSERT_EQ(asker.results.size(), 1u);
  EXPECT_EQ(farm_.farm.counters().held_back, 1) << "the other one is up";
  EXPECT_EQ(asker.results[0].second.samples_ns.front(), 1000);
  EXPECT_FALSE(asker.results[0].second.noisy);
}

// A second loss would condemn what runs well on another one.
TEST_F(FarmDoubtTest, ADeviceThatWasLostWithItConfirmsNoTimeThatIsTooGood) {
  FarmHarness::Device& dying = Add("dying", {1000});
  dying.run = [](const proto::Grant&) {
    return std::pair{5 * kSecond, proto::WorkResult{.outcome = Outcome::kOk}};
  };
  FarmHarness::Asker& asker = Session();
  asker.backlog = 1;
  farm_.RunFor(20 * kMs);
  ASSERT_TRUE(dying.running);
  asker.backlog = 0;
  Add("fast", {500});
  farm_.Crash(dying);
  for (int i = 0; i < 50 && asker.results.empty(); ++i) {
    farm_.RunFor(100 * kMs);
    if (dying.running) farm_.Crash(dying);
  }
  ASSERT_EQ(asker.results.size(), 1u);
  EXPECT_EQ(asker.results[0].second.outcome, Outcome::kOk) << asker.results[0].second.message;
  EXPECT_TRUE(asker.results[0].second.noisy) << "nobody confirmed it";
}

TEST_F(FarmDoubtTest, WhereNobodyElseCanMeasureItCountsAsNoisy) {
  Add("alone", {500});
  FarmHarness::Asker& asker = Session();
  AskOne(asker);
  Compare(asker);
  farm_.RunFor(kSecond);
  EXPECT_GE(asker.results.size(), 2u);
  EXPECT_EQ(asker.results.back().first, kComparison);
  for (const auto& [number, result] : asker.results) {
    EXPECT_EQ(result.outcome, Outcome::kOk);
    EXPECT_TRUE(result.noisy);
  }
}

TEST_F(FarmDoubtTest, TheDoubtedDeviceNeverConfirmsItself) {
  FarmHarness::Device& liar = Add("liar", {500});
  FarmHarness::Device& other = Add("other", {1000});
  other.run = [](const proto::Grant&) {
    return std::pair{kMinute, proto::WorkResult{.outcome = Outcome::kOk, .samples_ns = {1000}}};
  };
  FarmHarness::Asker& asker = Session();
  asker.backlog = 1;
  farm_.RunFor(10 * kMs);
  asker.backlog = 0;
  ASSERT_EQ(other.granted, 0) << "the first by name goes first";
  farm_.RunFor(200 * kMs);
  ASSERT_EQ(farm_.farm.counters().held_back, 1);
  // The other one goes before it has answered.
  other.running.reset();
  other.queue.clear();
  farm_.farm.OnGone(other.stream, farm_.now_ns);
  farm_.RunFor(9 * kMinute);
  EXPECT_EQ(liar.granted, 1) << "it is not asked again";
  EXPECT_TRUE(asker.results.empty());
  farm_.RunFor(2 * kMinute);
  ASSERT_EQ(asker.results.size(), 1u) << "nobody came";
  EXPECT_EQ(asker.results[0].second.samples_ns.front(), 500);
  EXPECT_TRUE(asker.results[0].second.noisy);
}

}  // namespace
}  // namespace hone::server
