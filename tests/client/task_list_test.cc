#include "client/task_list.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace hone::client {
namespace {

TEST(TaskListTest, TellsTheLargestAndCountsTheRest) {
  std::vector<ListedTask> tasks(14);
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].name = "kernel " + std::to_string(i);
    tasks[i].flop = 1e6 * static_cast<double>(i + 1);
  }
  tasks[3].count = 5;  // 20 MFLOP together
  const std::string text = TaskListText(tasks, 12);
  EXPECT_TRUE(text.starts_with("  x5   kernel 3  4.0 MFLOP\n  x1   kernel 13  14.0 MFLOP\n"))
      << text;
  EXPECT_TRUE(text.ends_with("\n  ... and 3 more\n")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12);
  tasks.resize(12);
  EXPECT_EQ(TaskListText(tasks, 12).find("more"), std::string::npos);
}

}  // namespace
}  // namespace hone::client
