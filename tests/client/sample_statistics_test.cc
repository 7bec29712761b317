#include "client/sample_statistics.h"

#include "gtest/gtest.h"

namespace hone::client {
namespace {

TEST(SampleStatisticsTest, InterpolatesQuantiles) {
  const SampleStatistics s = Summarise({4, 1, 3, 2});
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.median, 2.5);
  EXPECT_DOUBLE_EQ(s.p10, 1.3);
  EXPECT_DOUBLE_EQ(s.p90, 3.7);
  EXPECT_EQ(Summarise({7}).p90, 7);
}

}  // namespace
}  // namespace hone::client
