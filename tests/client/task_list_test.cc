#include "client/task_list.h"

#include <algorithm>

#include "gtest/gtest.h"

#include "client/live_lines.h"
#include "client/task_table.h"

namespace hone::client {
namespace {

TEST(TaskListTest, TellsTheLargestAndCountsTheRest) {
  std::vector<ListedTask> tasks(14);
  for (size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].name = "kernel " + std::to_string(i);
    tasks[i].flop = 1e6 * static_cast<double>(i + 1);
  }
  tasks[3].count = 5;  // 20 MFLOP together
  const std::string text = TaskListText(tasks, SIZE_MAX, 12);
  EXPECT_TRUE(text.starts_with("  x5   kernel 3  4.0 MFLOP\n  x1   kernel 13  14.0 MFLOP\n"))
      << text;
  EXPECT_TRUE(text.ends_with("\n  ... and 3 more\n")) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 12);
  tasks.resize(12);
  EXPECT_EQ(TaskListText(tasks, SIZE_MAX, 12).find("more"), std::string::npos);
}

TEST(TaskListTest, NamesAreCutBetweenWordsAndOnlyWhereALineEnds) {
  const std::vector<ListedTask> tasks = {
      {.name = "transpose + conv 7x7/2 + relu + maxpool 1x112x112x64", .flop = 236e6}};
  EXPECT_EQ(TaskListText(tasks, SIZE_MAX),
            "  x1   transpose + conv 7x7/2 + relu + maxpool 1x112x112x64  236.0 MFLOP\n");
  EXPECT_EQ(TaskListText(tasks, 50), "  x1   transpose + conv 7x7/2 + …  236.0 MFLOP\n");
  EXPECT_EQ(TaskListText(tasks, 10), "  x1   transpo…  236.0 MFLOP\n") << "a name has 8 cells";
}

TEST(TaskTableTest, NamesAreWholeWithoutATerminalAndCutBetweenWordsOnOne) {
  const std::string name = "transpose + conv 7x7/2 + relu + maxpool 3x3/2 1x112x112x64";
  const std::vector<TaskRow> rows = {{.name = name, .trials = 12}};
  const std::string all = TaskTable(rows, {})[1];
  EXPECT_TRUE(all.ends_with("  x1   " + name)) << all;
  const std::string cut = TaskTable(rows, {.cells = 79})[1];
  EXPECT_TRUE(cut.ends_with("  x1   transpose + conv 7x7/2 + relu + …")) << cut;
  EXPECT_LE(CellsOf(cut), 79U);
}

}  // namespace
}  // namespace hone::client
