#include "client/text_table.h"

#include "gtest/gtest.h"

namespace hone::client {
namespace {

TEST(TextTableTest, ColumnsAreAsWideAsWhatStandsInThem) {
  TextTable table({"NAME", "STATE", "REMARK"});
  table.Add({"a-name-that-is-long", "up", ""});
  table.Add({"é", "\x1b[2J", "why"});
  EXPECT_EQ(table.Text(),
            "NAME                 STATE    REMARK\n"
            "a-name-that-is-long  up\n"
            "é                    \\x1b[2J  why\n");
}

TEST(AgeTextTest, SaysAsMuchAsIsNeeded) {
  constexpr int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
  for (const auto& [ms, text] :
       {std::pair(int64_t{-5}, "0s"), std::pair(119 * kSecond, "119s"),
        std::pair(2 * kMinute, "2m"), std::pair(119 * kMinute, "119m"), std::pair(2 * kHour, "2h"),
        std::pair(130 * kMinute, "2h10m"), std::pair(48 * kHour, "2d"),
        std::pair(76 * kHour, "3d4h"), std::pair(2401 * kHour, "100d")}) {
    EXPECT_EQ(AgeText(7'000'000'000 + ms, 7'000'000'000), text);
  }
}

}  // namespace
}  // namespace hone::client
