#include "server/recent_map.h"

#include <optional>

#include "gtest/gtest.h"

namespace hone::server {
namespace {

TEST(RecentMapTest, TheOldestGoesWhenItIsFull) {
  RecentMap<int, char> map(2);
  map.Add(1, 'a');
  map.Add(2, 'b');
  map.Add(1, 'z');  // known
  EXPECT_EQ(map.Find(1), 'a');
  map.Add(3, 'c');
  EXPECT_EQ(map.Find(1), std::nullopt);
  EXPECT_EQ(map.Find(2), 'b');
  EXPECT_EQ(map.Find(3), 'c');
}

TEST(RecentMapTest, DoesNotGrowOnAndOn) {
  RecentMap<int, int> map(10);
  for (int i = 0; i < 1000; ++i) map.Add(i, i);
  EXPECT_EQ(map.size(), 10u);
}

}  // namespace
}  // namespace hone::server
