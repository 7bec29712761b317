#include "base/core/clock.h"

#include "gtest/gtest.h"

#include "base/core/fake_clock.h"

namespace hone {
namespace {

TEST(SystemMonotonicClock, SleepsAtLeastAsLongAsAsked) {
  const SystemMonotonicClock clock;
  const int64_t before_ns = clock.NowNs();
  clock.SleepNs(2'000'000);
  EXPECT_GE(clock.NowNs() - before_ns, 2'000'000);
}

TEST(SystemMonotonicClock, ReturnsAtOnceFromANegativeSleep) {
  const SystemMonotonicClock clock;
  const int64_t before_ns = clock.NowNs();
  clock.SleepNs(-1'000'000'000'000);
  EXPECT_LT(clock.NowNs() - before_ns, 1'000'000'000);
}

TEST(SystemWallClock, IsAfter2024AndBefore2100) {
  const int64_t seconds = SystemWallClock().UnixNs() / 1'000'000'000;
  EXPECT_GT(seconds, 1'704'067'200);
  EXPECT_LT(seconds, 4'102'444'800);
}

TEST(FakeClock, MovesOnlyWhenToldAndSleepingPassesTime) {
  FakeClock clock(/*start_ns=*/100, /*unix_offset_ns=*/1'000);
  EXPECT_EQ(clock.NowNs(), 100);
  EXPECT_EQ(clock.UnixNs(), 1'100);
  clock.SleepNs(5);
  clock.SleepNs(-5);
  clock.AdvanceNs(10);
  EXPECT_EQ(clock.NowNs(), 115);
  clock.JumpWallNs(-1'000);
  EXPECT_EQ(clock.NowNs(), 115);
  EXPECT_EQ(clock.UnixNs(), 115);
}

}  // namespace
}  // namespace hone
