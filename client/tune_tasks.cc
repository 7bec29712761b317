#include "client/tune_tasks.h"

#include <map>
#include <memory>
#include <utility>

#include "search/tuning_task.h"

namespace hone::client {

std::vector<search::TuningTask> MakeTasks(std::vector<compiler::ModelKernel> kernels,
                                          const ir::Target& target) {
  std::vector<search::TuningTask> tasks;
  std::map<std::string, size_t> known;
  for (auto& k : kernels) {
    if (k.count <= 0) continue;
    const auto [place, fresh] = known.try_emplace(k.hash, tasks.size());
    if (!fresh) {
      tasks[place->second].count += k.count;
      continue;
    }
    search::TuningTask task =
        search::TaskOf(std::make_shared<const ir::Workload>(std::move(k.workload)), target);
    task.name = k.name;
    task.count = k.count;
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace hone::client
