#include "client/task_list.h"

#include <algorithm>

#include "fmt/format.h"

#include "client/live_lines.h"

namespace hone::client {

std::string TaskListText(const std::vector<search::TuningTask>& tasks, size_t most_lines) {
  constexpr size_t kNameCells = 56;
  std::vector<const search::TuningTask*> order;
  for (const search::TuningTask& task : tasks) order.push_back(&task);
  std::stable_sort(order.begin(), order.end(),
                   [](const search::TuningTask* a, const search::TuningTask* b) {
                     return a->count * a->flop > b->count * b->flop;
                   });
  const size_t shown = order.size() <= most_lines ? order.size() : most_lines - 1;
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    text += fmt::format("  x{:<3} {}  {:.1f} MFLOP\n", order[i]->count,
                        CutToCells(order[i]->name, kNameCells), order[i]->flop * 1e-6);
  }
  if (shown < order.size()) text += fmt::format("  ... and {} more\n", order.size() - shown);
  return text;
}

}  // namespace hone::client
