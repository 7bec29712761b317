#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "server/farm.h"
#include "tests/server/farm_harness.h"

// What devices say that they can do at most, and what comes of it.
namespace hone::server {
namespace {

using measure::Outcome;
using ::testing::HasSubstr;
constexpr int64_t kMs = FarmHarness::kMs;
constexpr int64_t kSecond = FarmHarness::kSecond;
constexpr double kPeak = 1e11;
/// 800 ns of one core at that peak.
constexpr double kFlop = 80'000;

auto Runs(int64_t ns) {
  return [ns](const proto::Grant&) {
    proto::WorkResult result{.outcome = Outcome::kOk};
    result.samples_ns = {ns};
    return std::pair{50 * kMs, result};
  };
}

class FarmProbesTest : public ::testing::Test {
 protected:
  FarmHarness::Device& Add(const std::string& name, double peak, int64_t takes_ns) {
    FarmHarness::Device& device = farm_.AddDevice(name);
    device.run = Runs(takes_ns);
    farm_.Probe(device, peak);
    return device;
  }
  FarmHarness::Asker& Tune() {
    FarmHarness::Asker& asker = farm_.AddSession("s", "p", 0);
    asker.flop = kFlop;
    asker.backlog = 12;
    farm_.RunFor(5 * kSecond);
    EXPECT_GT(asker.results.size(), 50u);
    return asker;
  }
  std::string ReasonOf(const std::string& worker) const {
    for (const proto::DeviceInfo& info : farm_.farm.Devices()) {
      if (info.worker == worker) return info.reason;
    }
    return "no such worker";
  }
  DeviceState StateOf(const std::string& worker) const {
    for (const proto::DeviceInfo& info : farm_.farm.Devices()) {
      if (info.worker == worker) return info.state;
    }
    return DeviceState::kLost;
  }
  FarmHarness farm_;
};

TEST_F(FarmProbesTest, WhatTheBestProbeDoesNotAllowIsMeasuredElsewhereFirst) {
  Add("a", kPeak, 1000);
  Add("b", kPeak * 0.98, 1000);
  Add("liar", kPeak, 500);
  for (const auto& [number, result] : Tune().results) EXPECT_EQ(result.samples_ns.front(), 1000);
  EXPECT_EQ(StateOf("liar"), DeviceState::kQuarantined);
}

TEST_F(FarmProbesTest, WhatItAllowsIsBelieved) {
  Add("a", kPeak, 820);
  Add("b", kPeak * 1.2, 700);
  Add("c", kPeak * 0.9, 640);
  Tune();
  // 1.2 times the peak allows 667 ns, and the margin 513.
  EXPECT_EQ(farm_.farm.counters().held_back, 0);
}

TEST_F(FarmProbesTest, OneThatOverstatesItsProbeLoosensNothing) {
  Add("a", kPeak, 1000);
  Add("b", kPeak, 1000);
  Add("liar", 1e14, 400);
  EXPECT_THAT(ReasonOf("liar"), HasSubstr("1000.00 × its class's median: not believed"));
  EXPECT_EQ(ReasonOf("a"), "");
  for (const auto& [number, result] : Tune().results) EXPECT_EQ(result.samples_ns.front(), 1000);
  EXPECT_EQ(StateOf("liar"), DeviceState::kQuarantined);
}

TEST_F(FarmProbesTest, OfTwoTheLowerOneIsBelieved) {
  Add("a", kPeak, 1000);
  Add("liar", 1e14, 400);
  for (const auto& [number, result] : Tune().results) EXPECT_EQ(result.samples_ns.front(), 1000);
  EXPECT_EQ(StateOf("liar"), DeviceState::kQuarantined);
}

TEST_F(FarmProbesTest, OneThatUnderstatesItsProbeCostsNothing) {
  Add("a", kPeak, 1000);
  Add("b", kPeak, 1000);
  Add("low", 1e9, 1000);
  EXPECT_THAT(ReasonOf("low"), HasSubstr("0.01 × its class's median"));
  Tune();
  EXPECT_EQ(farm_.farm.counters().held_back, 0);
}

TEST_F(FarmProbesTest, AgainstASingleOtherResultsAreMeasuredTwiceAndCount) {
  Add("a", kPeak, 1000);
  Add("low", 1e9, 1000);
  const FarmHarness::Asker& asker = Tune();
  EXPECT_GE(farm_.farm.counters().held_back, static_cast<int64_t>(asker.results.size()));
  EXPECT_EQ(farm_.farm.counters().quarantined, 0);
}

TEST_F(FarmProbesTest, AQuarantinedDeviceComesBackWhenItsProbeIsLikeItsClasss) {
  Add("a", kPeak, 1000);
  Add("b", kPeak, 1000);
  FarmHarness::Device& bad = Add("bad", kPeak, 1000);
  bad.run = [](const proto::Grant&) {
    return std::pair{50 * kMs, proto::WorkResult{.outcome = Outcome::kWrongAnswer}};
  };
  Tune();
  ASSERT_EQ(StateOf("bad"), DeviceState::kQuarantined);
  // Nobody asked: its own word opens no door.
  farm_.Probe(bad, kPeak);
  EXPECT_EQ(StateOf("bad"), DeviceState::kQuarantined);
  ASSERT_TRUE(farm_.farm.AskProbe("bad", "cpu:0", "by admin").ok());
  farm_.RunFor(100 * kMs);
  EXPECT_EQ(bad.probes_asked, 1);
  farm_.Probe(bad, kPeak / 2);
  EXPECT_EQ(StateOf("bad"), DeviceState::kQuarantined);
  EXPECT_THAT(ReasonOf("bad"), HasSubstr("0.50 × its class"));
  ASSERT_TRUE(farm_.farm.AskProbe("bad", "cpu:0", "by admin").ok());
  farm_.Probe(bad, kPeak * 1.01);
  EXPECT_EQ(StateOf("bad"), DeviceState::kActive);
  EXPECT_EQ(ReasonOf("bad"), "");
  const auto audited = std::ranges::count_if(farm_.changes, [](const db::FarmChange& change) {
    const auto* audit = std::get_if<db::FarmAudit>(&change);
    return audit != nullptr && audit->action == "probed" && audit->subject == "bad/cpu:0";
  });
  EXPECT_EQ(audited, 1);
}

TEST_F(FarmProbesTest, ItIsAskedAgainWhenItsLinkWasCutOnTheWay) {
  FarmHarness::Device& a = Add("a", kPeak, 1000);
  ASSERT_TRUE(farm_.farm.AskProbe("a", "cpu:0", "by admin").ok());
  (void)farm_.farm.Take();  // lost with the link
  farm_.farm.OnGone(a.stream, farm_.now_ns);
  farm_.farm.OnHello(a.stream, "a", a.hello, farm_.now_ns);
  farm_.RunFor(100 * kMs);
  EXPECT_EQ(a.probes_asked, 1);
  farm_.Probe(a, kPeak);
  farm_.farm.OnGone(a.stream, farm_.now_ns);
  farm_.farm.OnHello(a.stream, "a", a.hello, farm_.now_ns);
  farm_.RunFor(100 * kMs);
  EXPECT_EQ(a.probes_asked, 1) << "it has answered";
}

TEST_F(FarmProbesTest, OnlyAConnectedDeviceIsAsked) {
  FarmHarness::Device& a = Add("a", kPeak, 1000);
  EXPECT_EQ(farm_.farm.AskProbe("b", "cpu:0", "").code(), absl::StatusCode::kNotFound);
  farm_.farm.OnGone(a.stream, farm_.now_ns);
  const absl::Status away = farm_.farm.AskProbe("a", "cpu:0", "");
  EXPECT_EQ(away.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(StatusMessage(away), HasSubstr("not connected"));
}

}  // namespace
}  // namespace hone::server
