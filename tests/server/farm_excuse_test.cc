#include "gtest/gtest.h"

#include "tests/server/farm_harness.h"

// A log that cannot be written for a while stops honed, not its workers: when it goes on, nobody is
// blamed for the time in which nothing could be heard.
namespace hone::server {
namespace {

constexpr int64_t kSecond = FarmHarness::kSecond;

/// A worker whose candidate runs for 9 s, of 10 s that it has, 5 s ago.
enum class Told { kNothing, kTheCommitFailed, kTheNextTurn };

class FarmExcuseTest : public ::testing::TestWithParam<Told> {
 protected:
  FarmExcuseTest() {
    farm_.AddDevice("w1").run = [](const proto::Grant&) {
      proto::WorkResult result{.outcome = measure::Outcome::kOk};
      result.samples_ns = {1000};
      return std::pair{9 * kSecond, result};
    };
    asker_ = &farm_.AddSession("s", "p", 2);
    farm_.RunFor(5 * kSecond);
    EXPECT_EQ(farm_.farm.View(farm_.now_ns).started_leases, 1);
  }

  FarmHarness farm_;
  FarmHarness::Asker* asker_ = nullptr;
};

TEST_P(FarmExcuseTest, AStandstillOfHonedIsNoFaultOfCandidatesAndWorkers) {
  const bool excused = GetParam() != Told::kNothing;
  constexpr int64_t kStandstill = 60 * kSecond;
  farm_.farm.OnTurn(farm_.now_ns);
  farm_.now_ns += kStandstill;
  if (GetParam() == Told::kTheCommitFailed) farm_.farm.Excuse(kStandstill, farm_.now_ns);
  if (GetParam() == Told::kTheNextTurn) farm_.farm.OnTurn(farm_.now_ns);
  farm_.farm.Tick(farm_.now_ns);
  const FarmCounters& counters = farm_.farm.counters();
  EXPECT_EQ(counters.expired + counters.lost > 0, !excused);
  if (!excused) return;
  farm_.RunFor(20 * kSecond);
  EXPECT_GE(asker_->results.size(), 2u);
  EXPECT_EQ(counters.expired + counters.lost + counters.condemned, 0);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithout, FarmExcuseTest,
                         ::testing::Values(Told::kNothing, Told::kTheCommitFailed,
                                           Told::kTheNextTurn));

// A loop that is slow, or waits for its next tick, does not stand still.
TEST(FarmExcuse, ShortGapsBetweenTurnsCount) {
  FarmHarness farm;
  farm.AddDevice("w1").run = [](const proto::Grant&) {
    return std::pair{1000 * kSecond, proto::WorkResult{}};
  };
  farm.AddSession("s", "p", 1);
  farm.RunFor(5 * kSecond);
  for (int i = 0; i < 3; ++i) {
    farm.farm.OnTurn(farm.now_ns);
    farm.now_ns += 2 * kSecond;
  }
  farm.farm.OnTurn(farm.now_ns);
  farm.farm.Tick(farm.now_ns);
  EXPECT_EQ(farm.farm.counters().expired, 1);
}

// An idle honed has ten turns a second, however often workers say that they live.
TEST(FarmExcuse, IdleTurnsBetweenShortHeartbeatsAreNoStandstill) {
  FarmPolicy policy;
  policy.heartbeat_ns = kSecond / 10;
  policy.lost_after_ns = kSecond;
  FarmHarness farm({}, policy);
  auto& device = farm.AddDevice("w1");
  for (int64_t turns = 0; turns < 5; ++turns) {
    farm.now_ns += 4 * kSecond / 10;  // a few of them on a busy machine
    farm.farm.OnTurn(farm.now_ns);
    farm.farm.Tick(farm.now_ns);
  }
  ASSERT_EQ(farm.farm.Take().closings.size(), 1u) << "it said nothing for 2 s";
  EXPECT_FALSE(farm.farm.Devices().front().connected) << device.name;
}

TEST(FarmExcuse, OneStandstillIsExcusedOnce) {
  FarmHarness farm;
  farm.AddDevice("w1").run = [](const proto::Grant&) {
    return std::pair{1000 * kSecond, proto::WorkResult{}};
  };
  farm.AddSession("s", "p", 1);
  farm.farm.OnTurn(farm.now_ns);
  farm.RunFor(5 * kSecond);
  farm.now_ns += 60 * kSecond;
  // The commit failed for as long, and the next turn finds the same gap.
  farm.farm.Excuse(60 * kSecond, farm.now_ns);
  farm.farm.OnTurn(farm.now_ns);
  farm.RunFor(6 * kSecond);
  EXPECT_EQ(farm.farm.counters().expired, 1);
}

TEST(FarmExcuse, LimitsRunAgainAfterIt) {
  FarmHarness farm;
  farm.AddDevice("w1").run = [](const proto::Grant&) {
    return std::pair{1000 * kSecond, proto::WorkResult{}};
  };
  farm.AddSession("s", "p", 1);
  farm.RunFor(5 * kSecond);
  farm.now_ns += 60 * kSecond;
  farm.farm.Excuse(60 * kSecond, farm.now_ns);
  farm.RunFor(4 * kSecond);
  EXPECT_EQ(farm.farm.counters().expired, 0);
  farm.RunFor(3 * kSecond);
  EXPECT_EQ(farm.farm.counters().expired, 1);
}

}  // namespace
}  // namespace hone::server
