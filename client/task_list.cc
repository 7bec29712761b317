#include "client/task_list.h"

#include <algorithm>
#include <functional>

#include "fmt/format.h"

#include "client/live_lines.h"

namespace hone::client {
namespace {

constexpr size_t kShortestName = 8;  // cells

}  // namespace

std::string TaskListText(std::vector<ListedTask> tasks, size_t cells, size_t most_lines) {
  std::ranges::stable_sort(tasks, std::greater<>(),
                           [](const ListedTask& task) { return task.count * task.flop; });
  const size_t shown = tasks.size() <= most_lines ? tasks.size() : most_lines - 1;
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const std::string count = fmt::format(
        "  {:<4} ", tasks[i].count > 0 ? fmt::format("x{}", tasks[i].count) : "-");
    const std::string flop = fmt::format("  {:.1f} MFLOP\n", tasks[i].flop * 1e-6);
    const size_t used = count.size() + flop.size() - 1;
    const size_t room = std::max(cells, used + kShortestName) - used;
    text += count + CutToWords(tasks[i].name, room) + flop;
  }
  if (shown < tasks.size()) text += fmt::format("  ... and {} more\n", tasks.size() - shown);
  return text;
}

}  // namespace hone::client
