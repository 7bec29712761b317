#include "client/tune_tasks.h"

#include <map>
#include <memory>
#include <utility>

#include "search/tuning_task.h"

namespace hone::client {

std::vector<search::TuningTask> MakeTasks(std::vector<compiler::ModelKernel> kernels,
                                          std::vector<compiler::ModelKernel> others,
                                          const ir::Target& target) {
  std::vector<search::TuningTask> tasks;
  std::map<std::string, size_t> known;
  const auto add = [&](compiler::ModelKernel& k, int search::TuningTask::*counted) {
    const auto [place, fresh] = known.try_emplace(k.hash, tasks.size());
    if (fresh) {
      tasks.push_back(
          search::TaskOf(std::make_shared<const ir::Workload>(std::move(k.workload)), target));
      tasks.back().name = k.name;
      tasks.back().count = 0;
    }
    tasks[place->second].*counted += k.count;
  };
  for (compiler::ModelKernel& k : kernels) {
    if (k.count > 0) add(k, &search::TuningTask::count);
  }
  const size_t now = tasks.size();
  for (compiler::ModelKernel& k : others) {
    const auto place = known.find(k.hash);
    if (k.count > 0 && (place == known.end() || place->second >= now))
      add(k, &search::TuningTask::other_count);
  }
  return tasks;
}

}  // namespace hone::client
