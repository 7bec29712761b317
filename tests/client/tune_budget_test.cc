#include "client/tune_budget.h"

#include <ctime>

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"

namespace hone::client {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kDayNs = int64_t{24} * 3600 * kSecondNs;

/// 2030-06-15 12:00:00 where the test runs; by the C library, not by the code under test.
int64_t NoonNs() {
  std::tm t = {};
  t.tm_year = 130;
  t.tm_mon = 5;
  t.tm_mday = 15;
  t.tm_hour = 12;
  t.tm_isdst = -1;
  return static_cast<int64_t>(std::mktime(&t)) * kSecondNs;
}

TEST(TuneBudgetTest, ATimeOfDayIsTodayOrTomorrow) {
  const FakeClock clock(0, NoonNs());
  const auto later = ReadUntil("18:30", clock);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(*later, NoonNs() + (6 * 3600 + 1800) * kSecondNs);
  const auto earlier = ReadUntil("11:59", clock);
  ASSERT_TRUE(earlier.ok()) << earlier.status();
  EXPECT_EQ(*earlier, NoonNs() + kDayNs - 60 * kSecondNs);
}

TEST(TuneBudgetTest, ADateIsItself) {
  const FakeClock clock(0, NoonNs());
  for (const char* text : {"2030-06-17T12:00", "2030-06-17 12:00:00"}) {
    const auto end = ReadUntil(text, clock);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(*end, NoonNs() + 2 * kDayNs);
  }
}

TEST(TuneBudgetTest, WhatIsNoTimeOrHasPassedIsRefused) {
  const FakeClock clock(0, NoonNs());
  for (const char* text : {"", "noon", "24:00", "12:60", "12", "12:30x", "2030-06-15T11:59",
                           "2030-02-30T10:00", "2030-13-01T10:00", "2030-06-17x12:00"}) {
    EXPECT_FALSE(ReadUntil(text, clock).ok()) << text;
  }
}

TEST(TuneBudgetTest, TheEarlierLimitCounts) {
  const FakeClock clock(0, NoonNs());
  const TuneBudget both = {.seconds = 100, .trials = 0, .until_unix_ns = NoonNs() + 50 * kSecondNs};
  EXPECT_DOUBLE_EQ(SecondsLeft(both, 0, clock), 50);
  EXPECT_DOUBLE_EQ(SecondsLeft(both, 80, clock), 20);
  EXPECT_DOUBLE_EQ(SecondsLeft(both, 200, clock), 0);
  EXPECT_EQ(ExpectedEnd(both, {}, clock), "12:00:50");
  EXPECT_EQ(EndText(both, {.seconds = 80, .answered = 500}, clock), "ends 12:00:20 at the latest");
  EXPECT_EQ(BudgetText({.seconds = 3723, .trials = 9, .until_unix_ns = 0}), "1:02:03, 9 trials");
  EXPECT_EQ(Duration(59.4), "0:59");
}

TEST(TuneBudgetTest, ANumberOfCandidatesIsEstimatedAtTheRateSoFar) {
  const FakeClock clock(0, NoonNs());
  const TuneBudget trials = {.seconds = 0, .trials = 640, .until_unix_ns = 0};
  EXPECT_LT(SecondsLeft(trials, 10, clock), 0);
  EXPECT_EQ(EndText(trials, {}, clock), "ends about 12:00:32, at 20 candidates a second");
  const TuneSoFar slow{.seconds = 100, .answered = 40};
  EXPECT_DOUBLE_EQ(TimeLeftOf(trials, slow, clock).seconds, 1500);
  EXPECT_TRUE(TimeLeftOf(trials, slow, clock).estimated);
  EXPECT_EQ(EndText(trials, slow, clock), "ends about 12:25:00, at 0.4 candidates a second");
  EXPECT_DOUBLE_EQ(TimeLeftOf(trials, {.seconds = 9, .answered = 700}, clock).seconds, 0);
  // A limit in time as well: whichever is sooner, but a guess is no reason to expect an early end.
  const TuneBudget both = {.seconds = 1000, .trials = 640, .until_unix_ns = 0};
  EXPECT_DOUBLE_EQ(TimeLeftOf(both, {}, clock).seconds, 1000);
  EXPECT_FALSE(TimeLeftOf(both, {}, clock).estimated);
  EXPECT_DOUBLE_EQ(TimeLeftOf(both, slow, clock).seconds, 900);
  EXPECT_FALSE(TimeLeftOf(both, slow, clock).estimated);
  const TuneSoFar fast{.seconds = 100, .answered = 400};
  EXPECT_DOUBLE_EQ(TimeLeftOf(both, fast, clock).seconds, 60);
  EXPECT_TRUE(TimeLeftOf(both, fast, clock).estimated);
  EXPECT_EQ(EndText(both, fast, clock), "ends 12:15:00 at the latest");
}

}  // namespace
}  // namespace hone::client
