#include "base/core/random.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace hone {
namespace {

// Published by Vigna's reference program and repeated by Rosetta Code, "Pseudo-random
// numbers/Splitmix64", seed 1234567.
TEST(SplitMix64, GivesThePublishedSequence) {
  uint64_t state = 1234567;
  EXPECT_EQ(SplitMix64(state), 6457827717110365317u);
  EXPECT_EQ(SplitMix64(state), 3203168211198807973u);
  EXPECT_EQ(SplitMix64(state), 9817491932198370423u);
  EXPECT_EQ(SplitMix64(state), 4593380528125082431u);
  EXPECT_EQ(SplitMix64(state), 16408922859458223821u);
}

// The reference vector of rand_xoshiro, made with the authors' C code from the state 1, 2, 3, 4.
TEST(Random, GivesThePublishedSequence) {
  Random random(std::array<uint64_t, 4>{1, 2, 3, 4});
  const std::array<uint64_t, 10> expected = {11520u,
                                             0u,
                                             1509978240u,
                                             1215971899390074240u,
                                             1216172134540287360u,
                                             607988272756665600u,
                                             16172922978634559625u,
                                             8476171486693032832u,
                                             10595114339597558777u,
                                             2904607092377533576u};
  for (const uint64_t value : expected) EXPECT_EQ(random.Next(), value);
}

TEST(Random, BelowReachesEveryValueEvenlyAndNothingElse) {
  Random random(1);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70'000; ++i) ++counts.at(static_cast<size_t>(random.Below(7)));
  // Standard deviation is 93; six of them never happen with a right generator.
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 560);
}

TEST(Random, BetweenIncludesBothEndsAndTheWholeRange) {
  Random random(2);
  int64_t low = 100;
  int64_t high = -100;
  for (int i = 0; i < 1'000; ++i) {
    const int64_t value = random.Between(-3, 3);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  EXPECT_EQ(low, -3);
  EXPECT_EQ(high, 3);
  bool negative = false;
  bool positive = false;
  for (int i = 0; i < 100; ++i) {
    const int64_t value =
        random.Between(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max());
    negative |= value < 0;
    positive |= value > 0;
  }
  EXPECT_TRUE(negative && positive);
}

TEST(Random, UniformStaysBelowOneWithTheRightMean) {
  Random random(3);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double value = random.Uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 100'000, 0.5, 0.006);
}

TEST(Random, SameSeedSameShuffleOtherSeedOther) {
  auto shuffled = [](uint64_t seed) {
    std::vector<int> values(52);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
    Random random(seed);
    random.Shuffle(values);
    return values;
  };
  EXPECT_EQ(shuffled(9), shuffled(9));
  EXPECT_NE(shuffled(9), shuffled(10));
  std::vector<int> sorted = shuffled(9);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_TRUE(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
}

TEST(Random, ForksAreRepeatableDistinctAndLeaveTheParentAlone) {
  Random parent(5);
  const auto state = parent.state();
  Random first = parent.Fork(1);
  Random again = parent.Fork(1);
  Random second = parent.Fork(2);
  EXPECT_EQ(parent.state(), state);
  const uint64_t value = first.Next();
  EXPECT_EQ(value, again.Next());
  EXPECT_NE(value, second.Next());
}

}  // namespace
}  // namespace hone
