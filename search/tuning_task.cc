#include "search/tuning_task.h"

#include <utility>

#include "ir/hash.h"
#include "ir/workload_cost.h"
#include "schedule/least_work.h"

namespace hone::search {

TuningTask TaskOf(std::shared_ptr<const ir::Workload> workload, const ir::Target& target) {
  TuningTask task;
  task.hash = ir::StructuralHash(*workload);
  task.flop = ir::CostOf(*workload).flop();
  task.bound_ns = schedule::LeastNs(*workload, target);
  task.workload = std::move(workload);
  return task;
}

}  // namespace hone::search
