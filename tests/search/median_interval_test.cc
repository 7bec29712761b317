#include "search/median_interval.h"

#include "gtest/gtest.h"

namespace hone::search {
namespace {

TEST(MedianIntervalTest, HoldsTheMedianAndIsNarrowForManySamples) {
  std::vector<int64_t> samples;
  for (int i = 0; i < 101; ++i) samples.push_back(1000 + i);
  const MedianInterval m = IntervalOf(samples);
  EXPECT_EQ(m.median, 1050);
  EXPECT_LT(m.low, m.median);
  EXPECT_GT(m.high, m.median);
  EXPECT_LE(m.high - m.low, 24);
  const MedianInterval one = IntervalOf({5});
  EXPECT_EQ(one.low, 5);
  EXPECT_EQ(one.high, 5);
}

}  // namespace
}  // namespace hone::search
