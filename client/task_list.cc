#include "client/task_list.h"

#include <algorithm>
#include <functional>

#include "fmt/format.h"

#include "client/live_lines.h"

namespace hone::client {

std::string TaskListText(std::vector<ListedTask> tasks, size_t most_lines) {
  constexpr size_t kNameCells = 56;
  std::ranges::stable_sort(tasks, std::greater<>(),
                           [](const ListedTask& task) { return task.count * task.flop; });
  const size_t shown = tasks.size() <= most_lines ? tasks.size() : most_lines - 1;
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    text += fmt::format("  x{:<3} {}  {:.1f} MFLOP\n", tasks[i].count,
                        CutToCells(tasks[i].name, kNameCells), tasks[i].flop * 1e-6);
  }
  if (shown < tasks.size()) text += fmt::format("  ... and {} more\n", tasks.size() - shown);
  return text;
}

}  // namespace hone::client
