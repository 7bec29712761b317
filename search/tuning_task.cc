#include "search/tuning_task.h"

#include <optional>
#include <utility>

#include "ir/hash.h"
#include "ir/workload_cost.h"
#include "measure/device_probe.h"
#include "schedule/least_work.h"

namespace hone::search {

TuningTask TaskOf(std::shared_ptr<const ir::Workload> workload, const ir::Target& target) {
  TuningTask task;
  task.hash = ir::StructuralHash(*workload);
  const ir::WorkloadCost cost = ir::CostOf(*workload);
  task.flop = cost.flop();
  const measure::DeviceProbe* const probe = measure::ProbesOfKinds().Find(target.kind);
  // A card has nominal rates, which bound a kernel better than those of all CPUs.
  const auto nominal = probe == nullptr ? std::nullopt : probe->Nominal(target);
  task.bound_ns = nominal ? nominal->BoundNs(cost) : schedule::LeastNs(*workload, target);
  task.workload = std::move(workload);
  return task;
}

}  // namespace hone::search
