#include "client/sample_statistics.h"

#include <numeric>

#include "gtest/gtest.h"

namespace hone::client {
namespace {

TEST(SampleStatisticsTest, InterpolatesQuantiles) {
  const SampleStatistics s = Summarise({4, 1, 3, 2});
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.median, 2.5);
  EXPECT_DOUBLE_EQ(s.p10, 1.3);
  EXPECT_DOUBLE_EQ(s.p90, 3.7);
  EXPECT_EQ(s.mean, 2.5);
  EXPECT_EQ(Summarise({7}).p90, 7);
  std::vector<double> counted(1001);
  std::iota(counted.begin(), counted.end(), 0.0);
  EXPECT_DOUBLE_EQ(Summarise(counted).p99, 990);
  EXPECT_DOUBLE_EQ(Summarise(counted).p999, 999);
}

}  // namespace
}  // namespace hone::client
