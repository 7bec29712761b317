#include "server/known_good.h"

#include <string>

#include "gtest/gtest.h"

namespace hone::server {
namespace {

TEST(KnownGood, RemembersTheFirstDevice) {
  KnownGood good;
  EXPECT_EQ(good.FirstDevice({1, 1}), nullptr);
  good.Add({1, 1}, "w1/cpu:0");
  good.Add({1, 1}, "w2/cpu:0");
  good.Add({2, 2}, "w2/cpu:0");
  ASSERT_NE(good.FirstDevice({1, 1}), nullptr);
  EXPECT_EQ(*good.FirstDevice({1, 1}), "w1/cpu:0");
  EXPECT_EQ(*good.FirstDevice({2, 2}), "w2/cpu:0");
  EXPECT_EQ(good.FirstDevice({3, 1}), nullptr) << "another one at the same place";
  EXPECT_EQ(good.FirstDevice({0, 3}), nullptr) << "a place that nobody took";
}

TEST(KnownGood, ALaterOneTakesTheSamePlace) {
  KnownGood good;
  good.Add({1, 7}, "w1/cpu:0");
  good.Add({2, 7 + KnownGood::kPlaces}, "w2/cpu:0");
  EXPECT_EQ(good.FirstDevice({1, 7}), nullptr);
  ASSERT_NE(good.FirstDevice({2, 7 + KnownGood::kPlaces}), nullptr);
  EXPECT_EQ(*good.FirstDevice({2, 7 + KnownGood::kPlaces}), "w2/cpu:0");
}

TEST(KnownGood, KeepsSoManyDevicesAndThenForgetsAll) {
  KnownGood good;
  for (uint64_t i = 0; i < KnownGood::kMostDevices; ++i) good.Add({i, i}, std::to_string(i));
  good.Add({9, KnownGood::kMostDevices}, "0");
  ASSERT_NE(good.FirstDevice({5, 5}), nullptr) << "that one is known";
  EXPECT_EQ(*good.FirstDevice({5, 5}), "5");
  good.Add({9, 9}, "another");
  EXPECT_EQ(good.FirstDevice({5, 5}), nullptr);
  ASSERT_NE(good.FirstDevice({9, 9}), nullptr);
  EXPECT_EQ(*good.FirstDevice({9, 9}), "another");
}

}  // namespace
}  // namespace hone::server
