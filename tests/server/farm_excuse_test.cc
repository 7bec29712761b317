#include "gtest/gtest.h"

#include "tests/server/farm_harness.h"

// A log that cannot be written for a while stops honed, not its workers: when it goes on, nobody is
// blamed for the time in which nothing could be heard.
namespace hone::server {
namespace {

constexpr int64_t kSecond = FarmHarness::kSecond;

/// A worker whose candidate runs for 9 s, of 10 s that it has, 5 s ago.
class FarmExcuseTest : public ::testing::TestWithParam<bool> {
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
  const bool excused = GetParam();
  constexpr int64_t kStandstill = 60 * kSecond;
  farm_.now_ns += kStandstill;
  if (excused) farm_.farm.Excuse(kStandstill, farm_.now_ns);
  farm_.farm.Tick(farm_.now_ns);
  const FarmCounters& counters = farm_.farm.counters();
  EXPECT_EQ(counters.expired + counters.lost > 0, !excused);
  if (!excused) return;
  farm_.RunFor(20 * kSecond);
  EXPECT_GE(asker_->results.size(), 2u);
  EXPECT_EQ(counters.expired + counters.lost + counters.condemned, 0);
}

INSTANTIATE_TEST_SUITE_P(WithAndWithout, FarmExcuseTest, ::testing::Bool());

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
