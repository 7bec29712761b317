#include "client/kernel_profile.h"

#include <algorithm>
#include <map>

#include "client/sample_statistics.h"

namespace hone::client {
namespace {

double BytesOf(const std::vector<ir::ArtifactBuffer>& buffers) {
  double bytes = 0;
  for (const ir::ArtifactBuffer& buffer : buffers) bytes += static_cast<double>(buffer.bytes);
  return bytes;
}

KernelProfileRow RowOf(const ir::PlanStep& step, const runtime::Executable& executable,
                       const measure::DeviceRates& rates) {
  KernelProfileRow row;
  if (step.kind == ir::PlanStepKind::kExtern) {
    row.name = step.extern_name;
    row.bytes = BytesOf(step.extern_inputs) + BytesOf(step.extern_outputs);
    return row;
  }
  const auto number = static_cast<size_t>(step.kernel);
  const runtime::PackageKernel& kernel = executable.info().kernels[number];
  row.workload = executable.plan().kernels[number].workload_hash;
  row.name = kernel.name;
  row.rung = kernel.rung;
  ir::WorkloadCost cost{.bytes = static_cast<double>(kernel.bytes)};
  std::ranges::copy(kernel.operations, cost.operations.begin());
  row.flop = cost.flop();
  row.bytes = cost.bytes;
  row.bound_us = rates.BoundNs(cost) * 1e-3;
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

std::vector<KernelProfileRow> KernelProfile::Rows(const runtime::Executable& executable,
                                                  const measure::DeviceRates& rates) const {
  std::map<std::pair<int32_t, std::string>, KernelProfileRow> rows;
  for (size_t i = 0; i < step_us_.size(); ++i) {
    const ir::PlanStep& step = executable.plan().steps[i];
    auto [it, fresh] = rows.try_emplace({step.kernel, step.extern_name});
    if (fresh) it->second = RowOf(step, executable, rates);
    it->second.count += ir::RepeatsOf(executable.plan(), i);
    it->second.time_us += Summarise(step_us_[i]).median;
  }
  std::vector<KernelProfileRow> sorted;
  for (auto& [key, row] : rows) {
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
