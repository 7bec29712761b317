#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hone::client {

/// A task as it is told before it is tuned.
struct ListedTask {
  std::string name;
  int count = 1;    ///< how often it occurs in the model
  double flop = 0;  ///< of one occurrence
};

/// What a tuning will work on, most arithmetic first: a line a task ("  x2   conv 3x3 + relu
/// 1x32x14x14  12.3 MFLOP") of at most `cells`, at most `most_lines`, the last of which then counts
/// the rest.
std::string TaskListText(std::vector<ListedTask> tasks, size_t cells, size_t most_lines = 12);

/// The same of a model's tasks: whatever has these members.
template <typename Task>
std::vector<ListedTask> ListedTasks(const std::vector<Task>& tasks) {
  std::vector<ListedTask> listed;
  for (const Task& task : tasks) listed.push_back({task.name, task.count, task.flop});
  return listed;
}

}  // namespace hone::client
