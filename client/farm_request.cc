#include "client/farm_request.h"

#include <map>
#include <utility>

#include "base/status.h"
#include "compiler/extract_kernels.h"
#include "ir/narrow_target.h"
#include "ir/target.h"
#include "ir/text.h"
#include "ir/workload_cost.h"
#include "schedule/least_work.h"

namespace hone::client {
absl::StatusOr<std::vector<proto::TaskSpec>> TasksOfModel(graph::Graph graph, ir::Target* target,
                                                          measure::BuilderClient& builder,
                                                          compiler::BatchRun batch) {
  HONE_ASSIGN_OR_RETURN(const std::vector<compiler::ModelKernel> kernels,
                        compiler::ExtractKernels(std::move(graph), target->text, builder, batch,
                                                 compiler::CascadeRun::kOff));
  std::vector<const ir::Workload*> workloads;
  for (const compiler::ModelKernel& kernel : kernels) workloads.push_back(&kernel.workload);
  *target = ir::NarrowedTo(*target, workloads);
  std::vector<proto::TaskSpec> tasks;
  std::map<std::string, size_t> known;
  for (const compiler::ModelKernel& kernel : kernels) {
    if (kernel.count <= 0) continue;
    const auto [place, fresh] = known.try_emplace(kernel.hash, tasks.size());
    if (!fresh) {
      tasks[place->second].count += kernel.count;
      continue;
    }
    tasks.push_back({.workload = ir::ToText(kernel.workload),
                     .name = kernel.name,
                     .count = kernel.count,
                     .flop = ir::CostOf(kernel.workload).flop(),
                     .bound_ns = schedule::LeastNs(kernel.workload, *target)});
  }
  return tasks;
}

}  // namespace hone::client
