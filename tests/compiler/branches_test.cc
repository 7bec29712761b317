#include "compiler/branches.h"

#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::compiler {
namespace {

using ::testing::ElementsAre;

/// Steps on a graph of dependences: (from, to), from below to.
StepGraph Steps(int count, const std::vector<std::pair<int, int>>& edges) {
  StepGraph steps;
  steps.successors.resize(static_cast<size_t>(count));
  steps.num_predecessors.resize(static_cast<size_t>(count), 0);
  for (const auto& [from, to] : edges) {
    steps.successors[static_cast<size_t>(from)].push_back(to);
    ++steps.num_predecessors[static_cast<size_t>(to)];
  }
  return steps;
}

/// All on one thread, a tenth of a millisecond each.
std::vector<StepTime> Serial(int count) {
  return std::vector<StepTime>(static_cast<size_t>(count), {.alone_ns = 1e5, .threads = 1});
}

TEST(FindBranches, TowersBetweenAForkAndAJoin) {
  //     1 - 2
  //   /       \
  // 0 --- 3 --- 4
  const StepGraph steps = Steps(5, {{0, 1}, {1, 2}, {0, 3}, {2, 4}, {3, 4}});
  const auto forks = FindBranches(steps, Serial(5), 2);
  ASSERT_EQ(forks.size(), 1U);
  EXPECT_THAT(forks[0].branches, ElementsAre(ElementsAre(1, 2), ElementsAre(3)));
}

TEST(FindBranches, OnOneThreadThereAreNone) {
  const StepGraph steps = Steps(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  EXPECT_TRUE(FindBranches(steps, Serial(4), 1).empty());
}

TEST(FindBranches, StepsThatFillTheThreadsStayInTurn) {
  const StepGraph steps = Steps(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  const std::vector<StepTime> even(4, {.alone_ns = 1e6, .threads = 8});
  EXPECT_TRUE(FindBranches(steps, even, 8).empty());
  std::vector<StepTime> one_idles = even;
  one_idles[1].threads = 2;
  EXPECT_EQ(FindBranches(steps, one_idles, 8).size(), 1U);
}

TEST(FindBranches, AShortcutIsNoBranch) {
  // 0 -> 1 -> 2 and 0 -> 2: a residual sum.
  EXPECT_TRUE(FindBranches(Steps(3, {{0, 1}, {1, 2}, {0, 2}}), Serial(3), 2).empty());
}

TEST(FindBranches, BlocksThatHandOnSeveralResultsMeetBetween) {
  // Each of 2 and 3 reads what 0 and 1 give: towers that meet in a Concat made in place.
  const StepGraph steps =
      Steps(6, {{0, 2}, {1, 2}, {0, 3}, {1, 3}, {2, 4}, {3, 4}, {2, 5}, {3, 5}});
  const auto forks = FindBranches(steps, Serial(6), 2);
  ASSERT_EQ(forks.size(), 3U);
  EXPECT_THAT(forks[0].branches, ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(forks[1].branches, ElementsAre(ElementsAre(2), ElementsAre(3)));
  EXPECT_THAT(forks[2].branches, ElementsAre(ElementsAre(4), ElementsAre(5)));
}

TEST(FindBranches, ModelsWithoutACommonStepHaveThemToo) {
  const auto forks = FindBranches(Steps(4, {{0, 2}, {1, 3}}), Serial(4), 2);
  ASSERT_EQ(forks.size(), 1U);
  EXPECT_THAT(forks[0].branches, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
}

TEST(FindBranches, OfForksWithinForksTheOneThatGainsMoreStays) {
  // 0 forks to 1 and 2; 1 to 3 and 4, which meet in 5; all in 6. With a short step 2 the inner
  // one gains more.
  const StepGraph steps =
      Steps(7, {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {3, 5}, {4, 5}, {5, 6}, {2, 6}});
  std::vector<StepTime> times = Serial(7);
  times[2].alone_ns = 1e4;
  const auto inner = FindBranches(steps, times, 2);
  ASSERT_EQ(inner.size(), 1U);
  EXPECT_THAT(inner[0].branches, ElementsAre(ElementsAre(3), ElementsAre(4)));
  times[2].alone_ns = 4e5;
  const auto outer = FindBranches(steps, times, 2);
  ASSERT_EQ(outer.size(), 1U);
  EXPECT_THAT(outer[0].branches, ElementsAre(ElementsAre(1, 3, 4, 5), ElementsAre(2)));
}

}  // namespace
}  // namespace hone::compiler
