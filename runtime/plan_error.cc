#include "runtime/plan_error.h"

#include <string>

#include "runtime/message.h"

namespace hone::runtime {
namespace {

const ir::PlanName* NameOf(const ir::Plan& plan, size_t step, int32_t input) {
  for (const ir::PlanName& name : plan.names) {
    if (static_cast<size_t>(name.step) == step && name.input == input) return &name;
  }
  return nullptr;
}

}  // namespace

Status KernelError(const ir::Plan& plan, size_t number, const KernelFailure& failure) {
  const ir::PlanStep& step = plan.steps[number];
  const ir::Artifact& kernel = plan.kernels[static_cast<size_t>(step.kernel)];
  const std::string where =
      Message("step ", number, ", kernel ", step.kernel, " (workload ", kernel.workload_hash,
              "), phase '", kernel.phases[static_cast<size_t>(failure.phase)].symbol, "'");
  const auto input = static_cast<size_t>(failure.input());
  if (failure.code() != ir::kPhaseBadIndex || input >= step.buffers.size()) {
    return {StatusCode::kInternal,
            Message(where, ": stopped with the unknown result ", failure.result,
                    "; the package does not fit this runtime, build it again")};
  }
  const ir::PlanName* const known = NameOf(plan, number, failure.input());
  std::string name = known != nullptr && !known->value.empty() ? Message("'", known->value, "'")
                                                               : Message("its input ", input);
  const int32_t id = step.buffers[input];
  if (id != ir::kNoPlanBuffer &&
      plan.buffers[static_cast<size_t>(id)].kind == ir::PlanBufferKind::kInput) {
    const auto io = static_cast<size_t>(plan.buffers[static_cast<size_t>(id)].offset);
    name = Message("the model's input '", plan.inputs[io].name, "'");
  }
  const std::string advice = Message(
      ": an index in ", name, " is out of range; give indices within the tensor they look up");
  if (known == nullptr) return {StatusCode::kOutOfRange, where + advice};
  return {StatusCode::kOutOfRange, Message("node '", known->node, "'", advice, " (", where, ")")};
}

Status ExternError(const ir::Plan& plan, size_t number, const Status& status) {
  const ir::PlanName* const name = NameOf(plan, number, -1);
  const std::string where =
      name == nullptr ? Message("step ", number) : Message("node '", name->node, "'");
  return {status.code(),
          Message(where, " (", plan.steps[number].extern_name, "): ", status.message())};
}

}  // namespace hone::runtime
