#include "tests/kinds/abacus_device.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/status_macros.h"
#include "runtime/message.h"
#include "runtime/plan_error.h"
#include "runtime/shared_object.h"
#include "tests/kinds/abacus_memory.h"

namespace hone::abacus {
namespace {

using runtime::InputBuffer;
using runtime::OutputBuffer;

struct Model {
  const ir::Plan* plan = nullptr;
  std::span<const std::byte> constants;
  std::vector<std::vector<ir::PhaseFunction>> kernels;
};

class Prepared final : public runtime::PreparedPlan {
 public:
  explicit Prepared(const Model& model) : model_(model) {
    const ir::Plan& plan = *model_.plan;
    arena_ = memory_.Allocate(static_cast<size_t>(plan.arena_bytes));
    constants_ = memory_.Allocate(model_.constants.size());
    std::copy(model_.constants.begin(), model_.constants.end(), memory_.At(constants_));
    io_.resize(plan.inputs.size() + plan.outputs.size());
  }

  int threads() const override { return 1; }
  std::span<const int64_t> step_times_ns() const override { return {}; }

  Status Run(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs) override {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (io_[i] == 0) io_[i] = memory_.Allocate(inputs[i].bytes);
      queue_.Submit([this, i, input = inputs[i]] {
        if (input.bytes > 0) std::memcpy(memory_.At(io_[i]), input.data, input.bytes);
        return Status();
      });
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (io_[inputs.size() + i] == 0) io_[inputs.size() + i] = memory_.Allocate(outputs[i].bytes);
    }
    for (size_t step = 0; step < model_.plan->steps.size(); ++step) {
      queue_.Submit([this, step] { return RunStep(step); });
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      queue_.Submit([this, handle = io_[inputs.size() + i], output = outputs[i]] {
        if (output.bytes > 0) std::memcpy(output.data, memory_.At(handle), output.bytes);
        return Status();
      });
    }
    return queue_.Wait();
  }

 private:
  Memory::Handle HandleOf(int32_t id) const {
    if (id == ir::kNoPlanBuffer) return 0;
    const ir::PlanBuffer& buffer = model_.plan->buffers[static_cast<size_t>(id)];
    const auto offset = static_cast<uint64_t>(buffer.offset);
    switch (buffer.kind) {
      case ir::PlanBufferKind::kArena: return arena_ + offset;
      case ir::PlanBufferKind::kConstant: return constants_ + offset;
      case ir::PlanBufferKind::kInput: return io_[offset];
      case ir::PlanBufferKind::kOutput: return io_[model_.plan->inputs.size() + offset];
    }
    return 0;
  }

  Status RunStep(size_t number) {
    const ir::PlanStep& step = model_.plan->steps[number];
    const ir::Artifact& kernel = model_.plan->kernels[static_cast<size_t>(step.kernel)];
    std::vector<Memory::Handle> buffers;
    for (const int32_t id : step.buffers) buffers.push_back(HandleOf(id));
    for (const ir::ArtifactStep& part : kernel.steps) {
      for (int64_t repeat = 0; repeat < part.repeats; ++repeat) {
        for (int32_t phase = part.first; phase < part.first + part.count; ++phase) {
          const int32_t result = Launch(step, phase, repeat, buffers);
          if (result == 0) continue;
          return runtime::KernelError(*model_.plan, number, {.result = result, .phase = phase});
        }
      }
    }
    return {};
  }

  int32_t Launch(const ir::PlanStep& step, int32_t number, int64_t repeat,
                 std::span<const Memory::Handle> buffers) {
    const auto kernel = static_cast<size_t>(step.kernel);
    const ir::ArtifactPhase& phase =
        model_.plan->kernels[kernel].phases[static_cast<size_t>(number)];
    const Memory::Handle scratch = memory_.Allocate(static_cast<size_t>(phase.scratch_bytes));
    return LaunchGrid(model_.kernels[kernel][static_cast<size_t>(number)], phase, memory_, buffers,
                      {.scratch = memory_.At(scratch), .step = repeat});
  }

  const Model& model_;
  Memory memory_;
  Memory::Handle arena_ = 0, constants_ = 0;
  std::vector<Memory::Handle> io_;
  Queue queue_;  // the last: its thread uses the others
};

class Loaded final : public runtime::LoadedPlan {
 public:
  static Result<std::unique_ptr<const LoadedPlan>> Load(const runtime::LoadInput& input) {
    auto loaded = std::make_unique<Loaded>();
    loaded->model_ = {.plan = input.plan, .constants = input.constants, .kernels = {}};
    const std::string_view text(reinterpret_cast<const char*>(input.code.data()),
                                input.code.size());
    const std::string code = Disguised(text);
    HONE_ASSIGN_OR_RETURN(loaded->code_,
                          runtime::SharedObject::Load(std::as_bytes(std::span(code)), "abacus"));
    for (const ir::Artifact& kernel : input.plan->kernels) {
      std::vector<ir::PhaseFunction>& phases = loaded->model_.kernels.emplace_back();
      for (const ir::ArtifactPhase& phase : kernel.phases) {
        HONE_ASSIGN_OR_RETURN(void* const address, loaded->code_.Symbol(phase.symbol));
        phases.push_back(reinterpret_cast<ir::PhaseFunction>(address));
      }
    }
    for (const ir::PlanStep& step : input.plan->steps) {
      if (step.kind != ir::PlanStepKind::kKernel) {
        return runtime::Invalid("an abacus has no routine ", step.extern_name);
      }
    }
    return std::unique_ptr<const LoadedPlan>(std::move(loaded));
  }

  Result<std::unique_ptr<runtime::PreparedPlan>> Prepare(
      const runtime::RunOptions&) const override {
    return std::unique_ptr<runtime::PreparedPlan>(std::make_unique<Prepared>(model_));
  }

 private:
  runtime::SharedObject code_;
  Model model_;
};

class Device final : public runtime::Device {
 public:
  Status CheckCode(std::span<const std::byte>) const override { return {}; }
  Result<std::unique_ptr<const runtime::LoadedPlan>> Load(
      const runtime::LoadInput& input) const override {
    return Loaded::Load(input);
  }
};

/// Linked into a program, this makes packages for an abacus run there.
const bool kRegistered = (RegisterDevice(), true);

}  // namespace

void RegisterDevice() {
  static const Device device;
  static const bool once = [] {
    Register();
    runtime::DevicesOfKinds().Add("abacus", &device);
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace hone::abacus
