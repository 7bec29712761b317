#include "client/sample_points.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::client {
namespace {

using ::testing::ElementsAre;

TEST(SamplePointsTest, TakesAllOfASmallTensor) {
  EXPECT_THAT(SamplePoints({2, 2}, 8, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(SamplePoints({}, 8, 0), ElementsAre(0));
  EXPECT_TRUE(SamplePoints({3, 0}, 8, 0).empty());
}

TEST(SamplePointsTest, StartsWithTheCornersAndRepeatsNothing) {
  for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{
           {1000}, {64, 56, 56}, {1, 128, 1, 30, 30}, {1, 64, 57, 57}}) {
    const std::vector<int64_t> points = SamplePoints(shape, 64, 1);
    int64_t elements = 1;
    for (const int64_t extent : shape) elements *= extent;
    EXPECT_EQ(points.size(), 64U);
    const std::set<int64_t> set(points.begin(), points.end());
    EXPECT_EQ(set.size(), points.size());
    EXPECT_GE(*set.begin(), 0);
    EXPECT_LT(*set.rbegin(), elements);
    EXPECT_TRUE(set.contains(0));
    EXPECT_TRUE(set.contains(elements - 1));
    EXPECT_TRUE(set.contains(shape.back() - 1)) << "the end of the first row";
  }
}

TEST(SamplePointsTest, ReachesBothSidesOfATail) {
  // 50 = 3 * 16 + 2: elements 47 and 48 are either side of the last whole vector.
  const std::vector<int64_t> points = SamplePoints({50}, 49, 2);
  const std::set<int64_t> set(points.begin(), points.end());
  int seams = 0;
  for (const int64_t seam : {15, 16, 47, 48, 49}) seams += set.contains(seam) ? 1 : 0;
  EXPECT_GE(seams, 3);
}

TEST(SamplePointsTest, IsAFunctionOfTheSeed) {
  EXPECT_EQ(SamplePoints({512, 512}, 32, 5), SamplePoints({512, 512}, 32, 5));
  EXPECT_NE(SamplePoints({512, 512}, 32, 5), SamplePoints({512, 512}, 32, 6));
}

}  // namespace
}  // namespace hone::client
