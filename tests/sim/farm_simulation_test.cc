#include "tests/sim/farm_simulation.h"

#include "fmt/format.h"
#include "gtest/gtest.h"

namespace hone::sim {
namespace {

constexpr uint64_t kSeeds = 240;

TEST(FarmSimulation, NothingIsLostOrCountedTwiceUnderAnySeed) {
  FarmSimulation::Counts all;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FarmSimulation simulation({.seed = seed});
    ASSERT_EQ(simulation.Run(), "") << "seed " << seed;
    const FarmSimulation::Counts& counts = simulation.counts();
    all.restarts += counts.restarts;
    all.power_cuts += counts.power_cuts;
    all.worker_crashes += counts.worker_crashes;
    all.breaks += counts.breaks;
    all.full_disks += counts.full_disks;
    all.condemned += counts.condemned;
    all.compared_restarts += counts.compared_restarts;
    all.shared += counts.shared;
    all.partitions += counts.partitions;
    all.suspensions += counts.suspensions;
    all.deadlines += counts.deadlines;
    all.retries += counts.retries;
    all.watched += counts.watched;
    all.farm.duplicates += counts.farm.duplicates;
    all.farm.stale += counts.farm.stale;
    all.farm.lost += counts.farm.lost;
  }
  // What was meant to happen did happen.
  EXPECT_GT(all.restarts, 60);
  EXPECT_GT(all.power_cuts, 60);
  EXPECT_GT(all.worker_crashes, 100);
  EXPECT_GT(all.breaks, 30);
  EXPECT_GT(all.full_disks, 30);
  EXPECT_GT(all.condemned, static_cast<int>(kSeeds) / 2);
  EXPECT_GT(all.compared_restarts, 30);
  EXPECT_GT(all.shared, 10) << "restarts of a search with two members";
  EXPECT_GT(all.farm.duplicates + all.farm.stale, 10);
  EXPECT_GT(all.farm.lost, 40);
  EXPECT_GT(all.partitions, 60);
  EXPECT_GT(all.suspensions, 60);
  EXPECT_GT(all.deadlines, 30);
  EXPECT_GT(all.retries, 2 * static_cast<int>(kSeeds) + 60);
  EXPECT_GT(all.watched, 1000);
}

TEST(FarmSimulation, BuildersAndRunnersLoseNothingEither) {
  FarmSimulation::Counts all;
  for (uint64_t seed = 1; seed <= kSeeds / 2; ++seed) {
    // Every other farm has one that does both, too.
    FarmSimulation simulation({.seed = seed,
                               .trials = 10,
                               .workers = static_cast<int>(seed % 2),
                               .builders = 2,
                               .runners = 2});
    ASSERT_EQ(simulation.Run(), "") << "seed " << seed;
    const FarmSimulation::Counts& counts = simulation.counts();
    all.restarts += counts.restarts;
    all.worker_crashes += counts.worker_crashes;
    all.artifacts_run += counts.artifacts_run;
    all.bad_artifacts += counts.bad_artifacts;
    all.farm.artifacts_gone += counts.farm.artifacts_gone;
    all.farm.artifacts_refused += counts.farm.artifacts_refused;
    all.farm.artifacts_unasked += counts.farm.artifacts_unasked;
  }
  EXPECT_GT(all.restarts, 30);
  EXPECT_GT(all.worker_crashes, 50);
  EXPECT_GT(all.artifacts_run, 500);
  EXPECT_GT(all.bad_artifacts, 5);
  EXPECT_GT(all.farm.artifacts_refused, 5);
  EXPECT_GT(all.farm.artifacts_gone, 5);
  EXPECT_GT(all.farm.artifacts_unasked, 5);
}

TEST(FarmSimulation, WhatIsDoubtedIsNeitherLostNorBelievedAlone) {
  FarmSimulation::Counts all;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    // Every fourth farm builds apart from running.
    const bool apart = seed % 4 == 0;
    FarmSimulation simulation({.seed = seed,
                               .trials = 10,
                               .workers = apart ? 0 : 3,
                               .builders = apart ? 2 : 0,
                               .runners = apart ? 2 : 0,
                               .doubts = true});
    ASSERT_EQ(simulation.Run(), "") << "seed " << seed;
    const FarmSimulation::Counts& counts = simulation.counts();
    all.restarts += counts.restarts;
    all.power_cuts += counts.power_cuts;
    all.parked += counts.parked;
    all.confirmed += counts.confirmed;
    all.compared += counts.compared;
    all.farm.held_back += counts.farm.held_back;
    all.farm.quarantined += counts.farm.quarantined;
    all.farm.invalid += counts.farm.invalid;
  }
  EXPECT_GT(all.restarts, 60);
  EXPECT_GT(all.power_cuts, 60);
  EXPECT_GT(all.parked, 30) << "results that came before they were asked for";
  EXPECT_GT(all.confirmed, 10) << "two devices said the same";
  EXPECT_GT(all.compared, static_cast<int>(kSeeds));
  EXPECT_GT(all.farm.held_back, 100);
  EXPECT_GT(all.farm.quarantined, 10);
  EXPECT_GT(all.farm.invalid, 5);
}

TEST(FarmSimulation, WhatOperatorsDoInFlightLosesNothing) {
  FarmSimulation::Counts all;
  // Rare things must occur often enough to be believed.
  for (uint64_t seed = 1; seed <= kSeeds * 3 / 2; ++seed) {
    // Every fourth farm builds apart from running.
    const bool apart = seed % 4 == 0;
    FarmSimulation simulation({.seed = seed,
                               .workers = apart ? 0 : 3,
                               .builders = apart ? 2 : 0,
                               .runners = apart ? 2 : 0,
                               .operators = true});
    ASSERT_EQ(simulation.Run(), "") << "seed " << seed;
    const FarmSimulation::Counts& counts = simulation.counts();
    all.restarts += counts.restarts;
    all.revoked += counts.revoked;
    all.drained += counts.drained;
    all.cancelled += counts.cancelled;
    all.late += counts.late;
  }
  std::printf("%d revoked, %d drained, %d cancelled, %d late\n", all.revoked, all.drained,
              all.cancelled, all.late);
  EXPECT_GT(all.restarts, 60);
  EXPECT_GT(all.revoked, 100);
  EXPECT_GT(all.drained, 100);
  EXPECT_GT(all.cancelled, 10);
  EXPECT_GT(all.late, 100) << "on streams that their workers had given up";
}

// A machine sleeps with the candidate that kills it: an answer of its own, run_timeout, and no
// loss.
TEST(FarmSimulation, Seed180WithPausesEnds) {
  FarmSimulation simulation({.seed = 180, .pauses = true});
  EXPECT_EQ(simulation.Run(), "");
}

TEST(FarmSimulation, APauseOfHonedIsNobodysSilence) {
  FarmSimulation::Counts all;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    FarmSimulation simulation({.seed = seed, .doubts = seed % 3 == 0, .pauses = true});
    ASSERT_EQ(simulation.Run(), "") << "seed " << seed;
    const FarmSimulation::Counts& counts = simulation.counts();
    all.pauses += counts.pauses;
    all.restarts += counts.restarts + counts.power_cuts;
    all.farm.lost += counts.farm.lost;
  }
  EXPECT_GT(all.pauses, 100);
  EXPECT_GT(all.restarts, 100);
  EXPECT_GT(all.farm.lost, 20) << "those of workers that were lost indeed";
}

/// Seeds that failed once. 2342, 2399, 2474: an answer of infrastructure was delivered, and honed
/// crashed before its commit: the attempt is measured after all.
class FarmSeed : public ::testing::TestWithParam<uint64_t> {};
TEST_P(FarmSeed, Holds) {
  FarmSimulation simulation({.seed = GetParam()});
  EXPECT_EQ(simulation.Run(), "");
}
INSTANTIATE_TEST_SUITE_P(Kept, FarmSeed, ::testing::Values(2342, 2399, 2474));

std::string RunOf(const SimulationOptions& options) { return FarmSimulation(options).Run(); }

/// The first seed of 500 that fails with this mistake and holds without it: what is said is said of
/// the mistake. 0: none.
uint64_t CaughtAt(Mistake mistake) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SimulationOptions options = OptionsFor(mistake, seed);
    const std::string wrong = RunOf(options);
    if (wrong.empty()) continue;
    options.mistake = Mistake::kNone;
    const std::string anyway = RunOf(options);
    std::printf("%s: seed %llu: %s%s\n", std::string(NameOf(mistake)).c_str(),
                static_cast<unsigned long long>(seed), wrong.c_str(),
                anyway.empty() ? "" : ", which is said without it too");
    if (anyway.empty()) return seed;
  }
  return 0;
}

class FarmMistake : public ::testing::TestWithParam<int> {};

TEST_P(FarmMistake, IsCaught) {
  const auto mistake = static_cast<Mistake>(GetParam());
  EXPECT_NE(CaughtAt(mistake), 0u) << "no seed caught " << NameOf(mistake);
}

INSTANTIATE_TEST_SUITE_P(All, FarmMistake, ::testing::Range(1, kNumMistakes),
                         [](const auto& chosen) {
                           std::string name(NameOf(static_cast<Mistake>(chosen.param)));
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace hone::sim
