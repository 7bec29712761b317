#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/status.h"
#include "server/farm.h"
#include "tests/server/farm_harness.h"

// A device whose worker has a child that cannot be killed.
namespace hone::server {
namespace {

using measure::Outcome;
using ::testing::HasSubstr;
constexpr int64_t kMs = FarmHarness::kMs;
constexpr int64_t kSecond = FarmHarness::kSecond;
constexpr char kReason[] = "process 7 does not end";

proto::WorkResult Ok() {
  proto::WorkResult result{.outcome = Outcome::kOk};
  result.samples_ns = {1000};
  return result;
}

/// "bad" runs one job for ever and holds three more; "good" measures the rest.
class LostDeviceTest : public ::testing::Test {
 protected:
  LostDeviceTest() {
    bad_.run = [](const proto::Grant&) { return std::pair{1000 * kSecond, Ok()}; };
    farm_.RunFor(500 * kMs);
    EXPECT_TRUE(bad_.running && bad_.queue.size() == 3);
    stuck_ = bad_.running->attempt;
  }

  void Lose(FarmHarness::Device& device) {
    farm_.farm.OnMessage(device.stream, proto::DeviceLost{kReason}, farm_.now_ns);
    farm_.RunFor(100 * kMs);
  }
  proto::DeviceInfo Info(const std::string& worker) const {
    for (const proto::DeviceInfo& info : farm_.farm.Devices()) {
      if (info.worker == worker) return info;
    }
    ADD_FAILURE() << worker;
    return {};
  }
  absl::Status Undrain() {
    return farm_.farm.SetDevice("bad", "cpu:0", DeviceTrigger::kUndrain, "by admin", farm_.now_ns);
  }
  /// The machine was started again, and a new process of the worker with it.
  FarmHarness::Device& Return() {
    farm_.farm.OnGone(bad_.stream, farm_.now_ns);
    return farm_.AddDevice("bad");
  }
  template <typename Change, typename Is>
  int64_t Count(Is is) const {
    return std::ranges::count_if(farm_.changes, [&](const db::FarmChange& change) {
      const auto* it = std::get_if<Change>(&change);
      return it != nullptr && is(*it);
    });
  }
  int64_t Ended(db::LeaseState state) const {
    return Count<db::EndFarmLease>([&](const auto& end) { return end.state == state; });
  }
  int64_t Audited() const {
    return Count<db::FarmAudit>([](const db::FarmAudit& audit) {
      return audit.actor == "honed" && audit.action == "lost" && audit.subject == "bad/cpu:0" &&
             audit.detail == kReason;
    });
  }
  int64_t Rows(DeviceState state, const std::string& reason) const {
    return Count<db::PutFarmDevice>([&](const auto& put) {
      return put.device.worker == "bad" && put.device.device == "cpu:0" &&
             put.device.state == state && put.device.reason == reason;
    });
  }

  FarmHarness farm_;
  FarmHarness::Device& bad_ = farm_.AddDevice("bad");
  FarmHarness::Device& good_ = farm_.AddDevice("good");
  FarmHarness::Asker& asker_ = farm_.AddSession("s", "p", 10);
  int64_t stuck_ = 0;
};

TEST_F(LostDeviceTest, WhatItHadGoesElsewhereAndOnlyWhatRanIsSuspect) {
  const int64_t granted = bad_.granted;
  Lose(bad_);
  EXPECT_EQ(Info("bad").state, DeviceState::kLost);
  EXPECT_EQ(Info("bad").reason, kReason);
  EXPECT_EQ(Rows(DeviceState::kLost, kReason), 1);
  EXPECT_EQ(Audited(), 1);
  EXPECT_EQ(bad_.killed, 1) << "its worker was told";
  EXPECT_TRUE(bad_.queue.empty());
  EXPECT_EQ(Ended(LeaseState::kLost), 1);
  EXPECT_EQ(Ended(LeaseState::kRevoked), 3);
  EXPECT_EQ(Count<db::PutFarmSuspect>([](const auto&) { return true; }), 1);
  EXPECT_EQ(Count<db::PutFarmSuspect>([&](const auto& put) {
              return put.suspect.attempt == stuck_ && put.suspect.losses == 1 &&
                     !put.suspect.condemned;
            }),
            1);
  farm_.RunFor(2 * kSecond);
  EXPECT_EQ(bad_.granted, granted) << "it has credit, and gets nothing";
  asker_.backlog = 0;  // a suspect runs alone, so when nothing else waits
  farm_.RunFor(2 * kSecond);
  const auto result =
      std::ranges::find(asker_.results, stuck_, [](const auto& r) { return r.first; });
  ASSERT_NE(result, asker_.results.end()) << "the other device had it";
  for (const auto& [number, r] : asker_.results) EXPECT_EQ(r.outcome, Outcome::kOk) << number;
  // Said again it changes nothing.
  Lose(bad_);
  EXPECT_EQ(Audited(), 1);
  EXPECT_EQ(Rows(DeviceState::kLost, kReason), 1);
}

TEST_F(LostDeviceTest, ACandidateThatCostsASecondDeviceIsCondemned) {
  good_.run = [&](const proto::Grant& grant) {
    return std::pair{grant.attempt == stuck_ ? 1000 * kSecond : 50 * kMs, Ok()};
  };
  Lose(bad_);
  asker_.backlog = 0;
  farm_.RunFor(2 * kSecond);
  ASSERT_TRUE(good_.running);
  ASSERT_EQ(good_.running->attempt, stuck_);
  Lose(good_);
  EXPECT_EQ(farm_.farm.counters().condemned, 1);
  EXPECT_EQ(farm_.farm.counters().lost, 2);
}

TEST_F(LostDeviceTest, WhatItHasAnsweredCounts) {
  proto::WorkResult result = Ok();
  result.token = bad_.running->token;
  farm_.farm.OnMessage(bad_.stream, result, farm_.now_ns);
  Lose(bad_);
  EXPECT_EQ(Ended(LeaseState::kLost), 0);
  EXPECT_TRUE(
      std::ranges::any_of(asker_.results, [&](const auto& r) { return r.first == stuck_; }));
}

TEST_F(LostDeviceTest, ItComesBackByUndrainWhenThatProcessIsGone) {
  Lose(bad_);
  const absl::Status refused = Undrain();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(StatusMessage(refused), HasSubstr(kReason));
  EXPECT_EQ(farm_.farm.AskProbe("bad", "cpu:0", "").code(), absl::StatusCode::kFailedPrecondition);
  FarmHarness::Device& back = Return();
  farm_.RunFor(kSecond);
  EXPECT_EQ(Info("bad").state, DeviceState::kLost) << "a person lets it back";
  EXPECT_EQ(back.granted, 0);
  ASSERT_TRUE(Undrain().ok());
  EXPECT_EQ(Info("bad").reason, "");
  farm_.RunFor(kSecond);
  EXPECT_GT(back.granted, 0);
  EXPECT_EQ(Rows(DeviceState::kActive, ""), 1);
}

TEST_F(LostDeviceTest, ItComesBackByAProbeLikeItsClasss) {
  farm_.Probe(good_, 1e11);
  ASSERT_TRUE(farm_.farm.AskProbe("bad", "cpu:0", "by admin").ok());
  Lose(bad_);
  farm_.Probe(bad_, 1e11);
  EXPECT_EQ(Info("bad").state, DeviceState::kLost) << "it was asked before";
  FarmHarness::Device& back = Return();
  ASSERT_TRUE(farm_.farm.AskProbe("bad", "cpu:0", "by admin").ok());
  farm_.Probe(back, 1e11);
  EXPECT_EQ(Info("bad").state, DeviceState::kActive);
}

TEST_F(LostDeviceTest, AProcessThatWasAwayMeanwhileSaysItAgain) {
  Lose(bad_);
  farm_.farm.OnGone(bad_.stream, farm_.now_ns);
  ASSERT_TRUE(Undrain().ok()) << "who knows what became of it";
  FarmHarness::Device& back = Return();
  Lose(back);
  EXPECT_EQ(Info("bad").state, DeviceState::kLost);
  EXPECT_EQ(Audited(), 2);
}

TEST_F(LostDeviceTest, ADeviceThatIsDrainedIsLostAsWell) {
  for (const bool emptied : {false, true}) {
    FarmHarness farm;
    auto& device = farm.AddDevice("w");
    device.run = [](const proto::Grant&) { return std::pair{1000 * kSecond, Ok()}; };
    farm.AddSession("s", "p", emptied ? 0 : 1);
    farm.RunFor(100 * kMs);
    ASSERT_TRUE(farm.farm.SetDevice("w", "cpu:0", DeviceTrigger::kDrain, "", farm.now_ns).ok());
    EXPECT_EQ(farm.farm.Devices().front().state,
              emptied ? DeviceState::kDrained : DeviceState::kDraining);
    farm.farm.OnMessage(device.stream, proto::DeviceLost{kReason}, farm.now_ns);
    farm.RunFor(100 * kMs);
    EXPECT_EQ(farm.farm.Devices().front().state, DeviceState::kLost);
    EXPECT_EQ(farm.farm.open_leases(), 0);
  }
}

TEST_F(LostDeviceTest, ARestartOfHonedKeepsIt) {
  FarmHarness later;
  db::FarmState stored;
  stored.devices = {{"bad", "cpu:0", DeviceState::kLost, kReason}};
  later.farm.Restore(stored, 0);
  FarmHarness::Device& device = later.AddDevice("bad");
  later.AddSession("s", "p", 10);
  later.RunFor(kSecond);
  EXPECT_EQ(device.granted, 0);
  EXPECT_EQ(later.farm.Devices().front().state, DeviceState::kLost);
  EXPECT_EQ(later.farm.Devices().front().reason, kReason);
}

}  // namespace
}  // namespace hone::server
