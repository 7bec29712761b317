#include "server/known_good.h"

#include "gtest/gtest.h"

namespace hone::server {
namespace {

TEST(KnownGood, RemembersTheFirstDeviceUntilThereAreTooMany) {
  KnownGood good;
  EXPECT_EQ(good.FirstDevice({1, 1}), nullptr);
  good.Add({1, 1}, "w1/cpu:0");
  good.Add({1, 1}, "w2/cpu:0");
  good.Add({2, 1}, "w2/cpu:0");
  ASSERT_NE(good.FirstDevice({1, 1}), nullptr);
  EXPECT_EQ(*good.FirstDevice({1, 1}), "w1/cpu:0");
  EXPECT_EQ(*good.FirstDevice({2, 1}), "w2/cpu:0");
  for (uint64_t i = 2; i < KnownGood::kMost; ++i) good.Add({i, 2}, "w3/cpu:0");
  EXPECT_NE(good.FirstDevice({1, 1}), nullptr);
  good.Add({7, 7}, "w2/cpu:0");
  EXPECT_EQ(good.FirstDevice({1, 1}), nullptr);
  ASSERT_NE(good.FirstDevice({7, 7}), nullptr);
  EXPECT_EQ(*good.FirstDevice({7, 7}), "w2/cpu:0");
}

}  // namespace
}  // namespace hone::server
