#include "runtime/stop_rate.h"

#include "gtest/gtest.h"

namespace hone::runtime {
namespace {

TEST(StopRate, IsOfTheTimeSinceTheLastLook) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  StopRate rate;
  static int64_t stops;
  stops = 1000;  // of a life that nobody watched
  const auto of = [] { return stops; };
  EXPECT_FALSE(rate.IsHigh(5 * kSecondNs, of));
  stops += 60;
  EXPECT_FALSE(rate.IsHigh(5 * kSecondNs + 1'000, of)) << "too soon to tell";
  EXPECT_TRUE(rate.IsHigh(6 * kSecondNs, of));
  stops += 10;
  EXPECT_TRUE(rate.IsHigh(6 * kSecondNs + 100'000'000, of)) << "as it was";
  EXPECT_FALSE(rate.IsHigh(7 * kSecondNs, of));
  stops += 100;
  EXPECT_FALSE(rate.IsHigh(kSecondNs, of)) << "another clock";
}

}  // namespace
}  // namespace hone::runtime
