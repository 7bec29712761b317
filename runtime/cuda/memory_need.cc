#include "runtime/cuda/memory_need.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/message.h"
#include "runtime/plan_check.h"

namespace hone::runtime {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

size_t Mebibytes(size_t bytes) { return (bytes + kMiB - 1) / kMiB; }

/// The step at which the buffers of the arena that are still read take most.
size_t PeakStep(const ir::Plan& plan) {
  constexpr size_t kNever = SIZE_MAX;
  std::vector<size_t> first(plan.buffers.size(), kNever), last(plan.buffers.size(), 0);
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    for (const int32_t id : plan.steps[step].buffers) {
      if (id == ir::kNoPlanBuffer) continue;
      const auto buffer = static_cast<size_t>(id);
      first[buffer] = std::min(first[buffer], step);
      last[buffer] = step;
    }
  }
  std::vector<int64_t> bytes(plan.steps.size() + 1, 0);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind != ir::PlanBufferKind::kArena || first[i] == kNever) continue;
    for (size_t step = first[i]; step <= last[i]; ++step) bytes[step] += plan.buffers[i].bytes;
  }
  return static_cast<size_t>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

}  // namespace

MemoryNeed MemoryNeedOf(const ir::Plan& plan, size_t constants) {
  MemoryNeed need{.constants = constants,
                  .arena = static_cast<size_t>(plan.arena_bytes),
                  .inputs_and_outputs = 0,
                  .peak_step = PeakStep(plan)};
  for (const auto* values : {&plan.inputs, &plan.outputs}) {
    for (const ir::PlanValue& value : *values) {
      need.inputs_and_outputs += static_cast<size_t>(*DenseBytes(value.dtype, value.shape));
    }
  }
  return need;
}

Status CheckMemory(const MemoryNeed& need, const ir::Plan& plan, size_t free, size_t total) {
  if (need.total() <= free) return {};
  std::string peak;
  if (need.arena > 0) {
    const ir::PlanStep& step = plan.steps[need.peak_step];
    const bool is_kernel = step.kind == ir::PlanStepKind::kKernel;
    peak = Message(" (most at step ", need.peak_step + 1, " of ", plan.steps.size(), ", ",
                   is_kernel
                       ? "workload " + plan.kernels[static_cast<size_t>(step.kernel)].workload_hash
                       : step.extern_name,
                   ")");
  }
  const std::string wanted =
      Message("the model needs ", Mebibytes(need.total()),
              " MiB of the GPU's memory: ", Mebibytes(need.constants), " for constants, ",
              Mebibytes(need.arena), " for intermediate results", peak, ", ",
              Mebibytes(need.inputs_and_outputs), " for inputs and outputs");
  if (need.total() > total) {
    return {StatusCode::kFailedPrecondition,
            Message(wanted, "; the device has ", total / kMiB,
                    "; compile the model for a smaller batch, or take a GPU with more memory")};
  }
  return {StatusCode::kResourceExhausted,
          Message(wanted, "; ", free / kMiB, " of the device's ", total / kMiB,
                  " MiB are free; end other programs that use it (nvidia-smi lists them)")};
}

}  // namespace hone::runtime
