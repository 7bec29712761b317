#include "client/kernel_profile.h"

#include <algorithm>
#include <map>

#include "base/status.h"
#include "client/sample_statistics.h"
#include "ir/text.h"

namespace hone::client {
namespace {

double BytesOf(const std::vector<ir::ArtifactBuffer>& buffers) {
  double bytes = 0;
  for (const ir::ArtifactBuffer& buffer : buffers) bytes += static_cast<double>(buffer.bytes);
  return bytes;
}

KernelProfileRow RowOf(const ir::PlanStep& step, const LoadedModel& model) {
  KernelProfileRow row;
  if (step.kind == ir::PlanStepKind::kExtern) {
    row.name = step.extern_name;
    row.bytes = BytesOf(step.extern_inputs) + BytesOf(step.extern_outputs);
    return row;
  }
  const auto kernel = static_cast<size_t>(step.kernel);
  const ir::Artifact& artifact = model.executable->plan().kernels[kernel];
  row.workload = artifact.workload_hash;
  row.name = model.report ? model.report->kernels[kernel].name : artifact.workload_hash;
  row.rung = model.executable->info().kernels[kernel].rung;
  row.bytes = BytesOf(artifact.inputs) + BytesOf(artifact.constants) + BytesOf(artifact.prologue) +
              BytesOf(artifact.outputs);
  return row;
}

}  // namespace

void KernelProfile::AddRun(const runtime::Context& context) {
  const std::span<const int64_t> times = context.step_times_ns();
  step_us_.resize(times.size());
  for (size_t i = 0; i < times.size(); ++i) {
    step_us_[i].push_back(static_cast<double>(times[i]) * 1e-3);
  }
}

absl::StatusOr<std::vector<KernelProfileRow>> KernelProfile::Rows(const LoadedModel& model,
                                                                  const ir::Target& target,
                                                                  const Roofline& roofline) const {
  const ir::Plan& plan = model.executable->plan();
  std::map<std::pair<int32_t, std::string>, KernelProfileRow> rows;
  for (size_t i = 0; i < step_us_.size(); ++i) {
    const ir::PlanStep& step = plan.steps[i];
    auto [it, fresh] = rows.try_emplace({step.kernel, step.extern_name});
    if (fresh) it->second = RowOf(step, model);
    it->second.count += 1;
    it->second.time_us += Summarise(step_us_[i]).median;
  }
  std::vector<KernelProfileRow> sorted;
  for (auto& [key, row] : rows) {
    if (model.report && key.first >= 0) {
      const compiler::KernelReport& report = model.report->kernels[static_cast<size_t>(key.first)];
      HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(report.workload));
      const WorkloadCost cost = CostOf(workload);
      row.flop = cost.flop;
      row.bytes = cost.bytes;
      row.bound_us = roofline.BoundNs(cost, target) * 1e-3;
    }
    const auto count = static_cast<double>(row.count);
    row.flop *= count;
    row.bytes *= count;
    row.bound_us *= count;
    sorted.push_back(std::move(row));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.time_us > b.time_us; });
  return sorted;
}

}  // namespace hone::client
