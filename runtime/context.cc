#include "runtime/context.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/core/cpu.h"
#include "base/core/status_macros.h"
#include "runtime/externs.h"
#include "runtime/message.h"
#include "runtime/plan_check.h"
#include "runtime/rounding.h"

namespace hone::runtime {
namespace {

constexpr int kPoison = 0xff;

bool IsAligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(kBufferAlignment) == 0;
}

bool Overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto a_begin = reinterpret_cast<uintptr_t>(a);
  const auto b_begin = reinterpret_cast<uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}

size_t SizeOf(const ir::PlanValue& value) {
  return static_cast<size_t>(*DenseBytes(value.dtype, value.shape));  // the loader has checked it
}

template <typename Buffer>
Status CheckSizes(const std::vector<ir::PlanValue>& values, std::span<const Buffer> buffers,
                  const char* what) {
  if (buffers.size() != values.size()) {
    return Invalid("the model has ", values.size(), " ", what, "s, ", buffers.size(),
                   " were given");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t bytes = SizeOf(values[i]);
    if (buffers[i].bytes != bytes) {
      return Invalid(what, " '", values[i].name, "' takes ", bytes, " bytes, ", buffers[i].bytes,
                     " were given");
    }
    if (bytes > 0 && buffers[i].data == nullptr) {
      return Invalid(what, " '", values[i].name, "' is a null pointer");
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Context>> Context::Create(std::shared_ptr<const Executable> executable,
                                                 const Options& options) {
  std::unique_ptr<Context> context(new Context);
  context->executable_ = std::move(executable);
  context->owner_ = ::getpid();
  context->poison_ = options.poison;
  context->fixed_shares_ = options.fixed_shares;
  context->clock_ = options.profile_clock;
  HONE_RETURN_IF_ERROR(context->Allocate(options));
  context->PrepareSteps();
  return context;
}

Status Context::Allocate(const Options& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return Invalid(options.threads, " threads; 0 (as the package says) to ", kMaxThreads,
                   " are possible");
  }
  int threads = options.threads;
  if (threads == 0) threads = std::min(executable_->threads(), UsableCores());
  HONE_RETURN_IF_ERROR(MakeCrew(options, threads));
  HONE_ASSIGN_OR_RETURN(
      arena_, Region::Allocate(static_cast<size_t>(executable_->plan().arena_bytes), "the arena"));
  HONE_ASSIGN_OR_RETURN(scratch_,
                        Scratch::Allocate(crew_->threads(), executable_->scratch_bytes()));
  return {};
}

Status Context::MakeCrew(const Options& options, int threads) {
  if (options.executor.parallel_for != nullptr) {
    crew_ = std::make_unique<Crew>(options.executor, threads);
    return {};
  }
  if (options.pool != nullptr) {
    crew_ = std::make_unique<Crew>(options.pool, std::min(threads, options.pool->threads()));
    return {};
  }
  ThreadPool::Options pool{.threads = threads, .spin_ns = options.spin_ns};
  if (options.pin) pool.cpus = OnePerCore(AllowedCpus());
  HONE_ASSIGN_OR_RETURN(crew_, Crew::Create(pool));
  return {};
}

// The threads are in the parent process; new ones stay where the scheduler puts them.
Status Context::RenewAfterFork() {
  if (crew_->threads() > 1 && !crew_->has_executor()) {
    HONE_ASSIGN_OR_RETURN(crew_, Crew::Create({.threads = crew_->threads()}));
  }
  owner_ = ::getpid();
  return {};
}

void Context::PrepareSteps() {
  const ir::Plan& plan = executable_->plan();
  // The code only reads constants; its pointers have one type.
  auto* constants = const_cast<std::byte*>(executable_->constants().data());
  for (const ir::PlanStep& step : plan.steps) {
    first_pointer_.push_back(pointers_.size());
    for (const int32_t id : step.buffers) {
      void* pointer = nullptr;
      if (id != ir::kNoPlanBuffer) {
        const ir::PlanBuffer& buffer = plan.buffers[static_cast<size_t>(id)];
        const auto offset = static_cast<size_t>(buffer.offset);
        switch (buffer.kind) {
          case ir::PlanBufferKind::kArena: pointer = arena_.data() + offset; break;
          case ir::PlanBufferKind::kConstant: pointer = constants + offset; break;
          case ir::PlanBufferKind::kInput: patches_.push_back({pointers_.size(), offset}); break;
          case ir::PlanBufferKind::kOutput:
            patches_.push_back({pointers_.size(), plan.inputs.size() + offset});
            break;
        }
      }
      pointers_.push_back(pointer);
    }
  }
  stages_.resize(plan.inputs.size() + plan.outputs.size());
  io_.resize(stages_.size());
  if (clock_ != nullptr) step_times_ns_.resize(plan.steps.size());
}

Status Context::CheckBuffers(std::span<const InputBuffer> inputs,
                             std::span<const OutputBuffer> outputs) const {
  const ir::Plan& plan = executable_->plan();
  HONE_RETURN_IF_ERROR(CheckSizes(plan.inputs, inputs, "input"));
  HONE_RETURN_IF_ERROR(CheckSizes(plan.outputs, outputs, "output"));
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (Overlap(outputs[i].data, outputs[i].bytes, inputs[j].data, inputs[j].bytes)) {
        return Invalid("the memory of output '", plan.outputs[i].name, "' overlaps that of input '",
                       plan.inputs[j].name, "'");
      }
    }
    for (size_t j = 0; j < i; ++j) {
      if (Overlap(outputs[i].data, outputs[i].bytes, outputs[j].data, outputs[j].bytes)) {
        return Invalid("the memory of output '", plan.outputs[i].name,
                       "' overlaps that of output '", plan.outputs[j].name, "'");
      }
    }
  }
  return {};
}

Result<void*> Context::Stage(size_t io, size_t bytes) {
  if (stages_[io].data() == nullptr) {
    HONE_ASSIGN_OR_RETURN(stages_[io], Region::Allocate(bytes, "a copy of an unaligned buffer"));
  }
  return static_cast<void*>(stages_[io].data());
}

Status Context::BindBuffers(std::span<const InputBuffer> inputs,
                            std::span<const OutputBuffer> outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    // The code only reads inputs; its pointers have one type.
    io_[i] = const_cast<void*>(inputs[i].data);
    if (io_[i] != nullptr && IsAligned(io_[i])) continue;
    HONE_ASSIGN_OR_RETURN(io_[i], Stage(i, inputs[i].bytes));
    if (inputs[i].bytes > 0) std::memcpy(io_[i], inputs[i].data, inputs[i].bytes);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t io = inputs.size() + i;
    io_[io] = outputs[i].data;
    if (io_[io] != nullptr && IsAligned(io_[io])) continue;
    HONE_ASSIGN_OR_RETURN(io_[io], Stage(io, outputs[i].bytes));
  }
  for (const Patch& patch : patches_) pointers_[patch.pointer] = io_[patch.io];
  return {};
}

void Context::Poison(std::span<const OutputBuffer> outputs) {
  std::memset(arena_.data(), kPoison, arena_.bytes());
  std::memset(scratch_.span().data(), kPoison, scratch_.span().size());
  const size_t inputs = io_.size() - outputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].bytes > 0) std::memset(io_[inputs + i], kPoison, outputs[i].bytes);
  }
}

Status Context::Run(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs) {
  HONE_RETURN_IF_ERROR(CheckBuffers(inputs, outputs));
  const std::lock_guard<std::mutex> lock(run_mutex_);
  if (threads() > 1 && ::getpid() != owner_) HONE_RETURN_IF_ERROR(RenewAfterFork());
  HONE_RETURN_IF_ERROR(BindBuffers(inputs, outputs));
  if (poison_) Poison(outputs);
  crew_->Begin();
  const Status status = RunSteps();
  crew_->End();
  HONE_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const void* result = io_[inputs.size() + i];
    if (result != outputs[i].data && outputs[i].bytes > 0) {
      std::memcpy(outputs[i].data, result, outputs[i].bytes);
    }
  }
  return {};
}

Status Context::RunSteps() {
  const DefaultRounding rounding;
  const size_t steps = executable_->plan().steps.size();
  if (clock_ == nullptr) {
    for (size_t step = 0; step < steps; ++step) HONE_RETURN_IF_ERROR(RunStep(step));
    return {};
  }
  int64_t before_ns = clock_->NowNs();
  for (size_t step = 0; step < steps; ++step) {
    HONE_RETURN_IF_ERROR(RunStep(step));
    const int64_t after_ns = clock_->NowNs();
    step_times_ns_[step] = after_ns - before_ns;
    before_ns = after_ns;
  }
  return {};
}

Status Context::RunStep(size_t number) {
  const ir::PlanStep& step = executable_->plan().steps[number];
  void* const* buffers = pointers_.data() + first_pointer_[number];
  if (step.kind == ir::PlanStepKind::kExtern) {
    const Status status = FindExtern(step.extern_name)->run(step, buffers);
    if (status.ok()) return {};
    const ir::PlanName* const name = NameOf(number, -1);
    const std::string where =
        name == nullptr ? Message("step ", number) : Message("node '", name->node, "'");
    return {status.code(), Message(where, " (", step.extern_name, "): ", status.message())};
  }
  const Kernel& kernel = executable_->kernels()[static_cast<size_t>(step.kernel)];
  const KernelFailure failure = kernel.Run({.buffers = buffers,
                                            .scratch = &scratch_,
                                            .max_threads = step.threads,
                                            .fixed = fixed_shares_},
                                           *crew_);
  if (failure.ok()) [[likely]]
    return {};
  return KernelError(number, failure);
}

const ir::PlanName* Context::NameOf(size_t step, int32_t input) const {
  for (const ir::PlanName& name : executable_->plan().names) {
    if (static_cast<size_t>(name.step) == step && name.input == input) return &name;
  }
  return nullptr;
}

Status Context::KernelError(size_t number, const KernelFailure& failure) const {
  const ir::Plan& plan = executable_->plan();
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
  const ir::PlanName* const known = NameOf(number, failure.input());
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

}  // namespace hone::runtime
