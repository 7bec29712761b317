#include "base/kill_point.h"

#include <array>
#include <csignal>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone {
namespace {

using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::KilledBySignal;

constexpr std::array<std::string_view, 3> kLabels = {"a.first", "a.second", "child.step"};

TEST(KillPoint, UnsetStepsDoNothing) {
  for (const std::string_view label : kLabels) KillPoint(label);
  EXPECT_FALSE(KillChildAt("child.step"));
}

TEST(KillPointDeathTest, EndsAtTheGivenTimeAndSaysWhere) {
  EXPECT_EXIT(
      {
        if (!SetKillPoints({"a.second:3"}, kLabels).ok()) std::exit(1);
        KillPoint("a.first");
        KillPoint("a.second");
        KillPoint("a.second");
        std::fputs("twice; ", stderr);
        KillPoint("a.second");
        std::exit(2);
      },
      KilledBySignal(SIGKILL), "twice; killed at a.second\n");
}

TEST(KillPointDeathTest, AChildsStepIsToldOnce) {
  EXPECT_EXIT(
      {
        const bool set = SetKillPoints({"child.step:2", "child.step:4"}, kLabels).ok();
        int told = 0;
        for (int i = 1; i <= 5; ++i) told = told * 10 + (KillChildAt("child.step") ? 1 : 0);
        std::exit(set && told == 1010 ? 7 : 1);
      },
      ExitedWithCode(7), "");
}

TEST(KillPoint, RefusesWhatItDoesNotKnow) {
  for (const char* point :
       {"a.third:1", "a.first", "a.first:0", "a.first:-1", "a.first:x", "a.first:1x", ":1", ""}) {
    const absl::Status set = SetKillPoints({point}, kLabels);
    EXPECT_EQ(set.code(), absl::StatusCode::kInvalidArgument) << point;
    EXPECT_THAT(std::string(set.message()), HasSubstr("a.first, a.second, child.step"));
  }
}

}  // namespace
}  // namespace hone
