#include "runtime/phase_order.h"

#include <algorithm>

namespace hone::runtime {
namespace {

const ir::Artifact& KernelOf(const ir::Plan& plan, int32_t step) {
  return plan.kernels[static_cast<size_t>(plan.steps[static_cast<size_t>(step)].kernel)];
}

int32_t ThreadsOf(const ir::Plan& plan, const ir::PlanJoin& at) {
  return std::min(KernelOf(plan, at.step).phases[static_cast<size_t>(at.phase)].threads,
                  plan.steps[static_cast<size_t>(at.step)].threads);
}

PhaseGroup Single(const ir::Plan& plan, const ir::PlanJoin& at) {
  return {.step = at.step,
          .phases = {at},
          .extent = KernelOf(plan, at.step).phases[static_cast<size_t>(at.phase)].parallel_extent,
          .threads = ThreadsOf(plan, at)};
}

}  // namespace

std::vector<PhaseGroup> PhaseOrder(const ir::Plan& plan, bool across_steps) {
  std::vector<PhaseGroup> order;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const auto step = static_cast<int32_t>(i);
    if (plan.steps[i].kind == ir::PlanStepKind::kExtern) {
      order.push_back({.kind = PhaseGroup::Kind::kExtern, .step = step});
      continue;
    }
    const std::vector<ir::ArtifactStep>& runs = KernelOf(plan, step).steps;
    for (size_t number = 0; number < runs.size(); ++number) {
      const ir::ArtifactStep& run = runs[number];
      const bool repeated = run.repeats != 1;
      if (repeated) {
        order.push_back({.kind = PhaseGroup::Kind::kRepeated,
                         .step = step,
                         .number = static_cast<int32_t>(number)});
      }
      for (int32_t phase = run.first; phase < run.first + run.count; ++phase) {
        const ir::PlanJoin at = {step, phase};
        if (repeated) {
          order.back().phases.push_back(at);
          continue;
        }
        PhaseGroup group = Single(plan, at);
        const bool joins =
            std::binary_search(plan.joins.begin(), plan.joins.end(), at) && !order.empty() &&
            order.back().Fits(group) &&
            (order.back().phases.back().step == step || (across_steps && !ir::IsEdge(plan, step)));
        if (joins) {
          order.back().phases.push_back(at);
          order.back().threads = std::max(order.back().threads, group.threads);
        } else {
          order.push_back(std::move(group));
        }
      }
    }
  }
  return order;
}

BarrierCount CountBarriers(const ir::Plan& plan) {
  BarrierCount count;
  for (const PhaseGroup& group : PhaseOrder(plan)) {
    const int64_t times = ir::RepeatsOf(plan, static_cast<size_t>(group.step));
    if (group.kind == PhaseGroup::Kind::kRepeated) {
      const ir::ArtifactStep& run =
          KernelOf(plan, group.step).steps[static_cast<size_t>(group.number)];
      for (const ir::PlanJoin& at : group.phases) {
        if (Single(plan, at).is_parallel()) count.barriers += times * run.repeats;
      }
    } else if (group.is_parallel()) {
      count.barriers += times;
      count.left_out += times * (static_cast<int64_t>(group.phases.size()) - 1);
    }
  }
  return count;
}

}  // namespace hone::runtime
