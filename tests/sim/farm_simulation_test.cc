#include "tests/sim/farm_simulation.h"

#include "fmt/format.h"
#include "gtest/gtest.h"

namespace hone::sim {
namespace {

constexpr uint64_t kSeeds = 200;

TEST(FarmSimulation, NothingIsLostOrCountedTwiceUnderAnySeed) {
  FarmSimulation::Counts all;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FarmSimulation simulation({.seed = seed});
    ASSERT_EQ(simulation.Run(), "") << "seed " << seed;
    all.honed_crashes += simulation.counts().honed_crashes;
    all.worker_crashes += simulation.counts().worker_crashes;
    all.breaks += simulation.counts().breaks;
    all.full_disks += simulation.counts().full_disks;
    all.condemned += simulation.counts().condemned;
    all.farm.duplicates += simulation.counts().farm.duplicates;
    all.farm.stale += simulation.counts().farm.stale;
    all.farm.lost += simulation.counts().farm.lost;
  }
  // What was meant to happen did happen.
  EXPECT_GT(all.honed_crashes, 100);
  EXPECT_GT(all.worker_crashes, 100);
  EXPECT_GT(all.breaks, 30);
  EXPECT_GT(all.full_disks, 30);
  EXPECT_GE(all.condemned, static_cast<int>(kSeeds));
  EXPECT_GT(all.farm.duplicates + all.farm.stale, 10);
  EXPECT_GT(all.farm.lost, 60);
}

class FarmMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(FarmMistake, IsCaught) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    FarmSimulation simulation({.seed = seed, .mistake = GetParam(), .steps = 3000});
    if (const std::string wrong = simulation.Run(); !wrong.empty()) {
      std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), wrong.c_str());
      return;
    }
  }
  FAIL() << "no seed caught it";
}

INSTANTIATE_TEST_SUITE_P(All, FarmMistake,
                         ::testing::Values(Mistake::kSendBeforeCommit, Mistake::kReuseStart,
                                           Mistake::kForgetOpenLeases,
                                           Mistake::kCloseWithoutLease));

}  // namespace
}  // namespace hone::sim
