#include "client/farm_request.h"

#include <map>
#include <utility>

#include "base/status.h"
#include "compiler/extract_kernels.h"
#include "graph/group_cost.h"
#include "ir/narrow_target.h"
#include "ir/target.h"
#include "ir/text.h"

namespace hone::client {
namespace {

/// No schedule is faster: multiply-adds at two per lane and nominal cycle, a quarter of them where
/// Winograd's F(4×4) may be used.
double BoundNs(const graph::GroupCost& cost, const ir::Target& target) {
  constexpr double kWinograd = 4;
  return static_cast<double>(cost.flops) / ir::MostFlopPerNs(target) / kWinograd;
}

}  // namespace

absl::StatusOr<std::vector<proto::TaskSpec>> TasksOfModel(graph::Graph graph, ir::Target* target,
                                                          measure::BuilderClient& builder,
                                                          compiler::BatchRun batch) {
  HONE_ASSIGN_OR_RETURN(const std::vector<compiler::ModelKernel> kernels,
                        compiler::ExtractKernels(std::move(graph), target->text, builder, batch));
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
    const graph::GroupCost cost = graph::CostOf(kernel.workload);
    tasks.push_back({.workload = ir::ToText(kernel.workload),
                     .name = kernel.name,
                     .count = kernel.count,
                     .flop = static_cast<double>(cost.flops + cost.other_flops),
                     .bound_ns = BoundNs(cost, *target)});
  }
  return tasks;
}

}  // namespace hone::client
