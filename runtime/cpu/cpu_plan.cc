#include "runtime/cpu/cpu_plan.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/core/cpu.h"
#include "base/core/status_macros.h"
#include "runtime/externs.h"
#include "runtime/message.h"
#include "runtime/plan_check.h"
#include "runtime/plan_error.h"
#include "runtime/process_number.h"
#include "runtime/rounding.h"

namespace hone::runtime {
namespace {

constexpr int kPoison = 0xff;
constexpr size_t kAlignment = kBufferAlignment;

/// Copies `total` bytes in parts that lie `from_pitch` and `to_pitch` bytes apart.
void CopyParts(const void* from, size_t from_pitch, void* to, size_t to_pitch, size_t part,
               size_t total) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  for (size_t done = 0; done < total; done += part) {
    std::memcpy(target, source, part);
    source += from_pitch;
    target += to_pitch;
  }
}

bool IsAligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(kBufferAlignment) == 0;
}

}  // namespace

CpuPlan::CpuPlan(const CpuModel& model, const RunOptions& options)
    : model_(model),
      poison_(options.poison),
      fixed_shares_(options.fixed_shares),
      clock_(options.profile_clock),
      owner_(ProcessNumber()) {}

Result<std::unique_ptr<PreparedPlan>> CpuPlan::Create(const CpuModel& model,
                                                      const RunOptions& options) {
  std::unique_ptr<CpuPlan> plan(new CpuPlan(model, options));
  HONE_RETURN_IF_ERROR(plan->Allocate(options));
  plan->PrepareSteps();
  plan->PrepareSections();
  plan->PrepareNodes();
  plan->PrepareMoves();
  plan->PrepareForks(options);
  return std::unique_ptr<PreparedPlan>(std::move(plan));
}

Status CpuPlan::Allocate(const RunOptions& options) {
  HONE_RETURN_IF_ERROR(MakeCrew(options, options.threads == 0 ? model_.threads : options.threads));
  HONE_ASSIGN_OR_RETURN(
      arena_, Region::Allocate(static_cast<size_t>(model_.plan->arena_bytes), "the arena"));
  int64_t scratch_bytes = 0;
  for (const Kernel& kernel : model_.kernels) {
    scratch_bytes = std::max(scratch_bytes, kernel.scratch_bytes());
  }
  HONE_ASSIGN_OR_RETURN(scratch_, Scratch::Allocate(crew_->threads(), scratch_bytes));
  if (!options.node_of_cpu.empty() && !model_.constants.empty()) {
    HONE_ASSIGN_OR_RETURN(copies_, model_.copies->Get(model_.constants, options.node_of_cpu));
  }
  return {};
}

Status CpuPlan::MakeCrew(const RunOptions& options, int threads) {
  if (options.executor.parallel_for != nullptr) {
    crew_ = std::make_unique<Crew>(options.executor, threads);
    return {};
  }
  if (options.pool != nullptr) {
    crew_ = std::make_unique<Crew>(options.pool, std::min(threads, options.pool->threads()));
    return {};
  }
  ThreadPool::Options pool{.threads = threads, .spin_ns = options.spin_ns};
  if (options.pin) {
    const std::vector<int> all = AllowedCpus(), fast = OnePerCore(OnPerformanceCores(all));
    pool.cpus = static_cast<size_t>(threads) <= fast.size() ? fast : OnePerCore(all);
  }
  HONE_ASSIGN_OR_RETURN(crew_, Crew::Create(pool));
  return {};
}

// The threads are in the parent process.
Status CpuPlan::RenewAfterFork() {
  if (crew_->threads() > 1 && !crew_->has_executor()) {
    const int threads = crew_->threads();
    HONE_ASSIGN_OR_RETURN(std::shared_ptr<ThreadPool> pool,
                          ThreadPool::InThisProcess(crew_->pool(), threads));
    crew_ = std::make_unique<Crew>(std::move(pool), threads);
  }
  owner_ = ProcessNumber();
  return {};
}

void CpuPlan::PrepareSteps() {
  const ir::Plan& plan = *model_.plan;
  // The code only reads constants; its pointers have one type.
  auto* constants = const_cast<std::byte*>(model_.constants.data());
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

void CpuPlan::PrepareSections() {
  const ir::Plan& plan = *model_.plan;
  parts_.resize(io_.size());
  for (const ir::PlanBuffer& buffer : plan.buffers) {
    const bool input = buffer.kind == ir::PlanBufferKind::kInput;
    if (buffer.advance_bytes == 0 || (!input && buffer.kind != ir::PlanBufferKind::kOutput)) {
      continue;
    }
    const auto bytes = static_cast<size_t>(buffer.advance_bytes);
    const size_t io = (input ? 0 : plan.inputs.size()) + static_cast<size_t>(buffer.offset);
    parts_[io] = {.bytes = bytes, .pitch = (bytes + kAlignment - 1) / kAlignment * kAlignment};
  }
  size_t next = 0;
  for (const ir::PlanLoop& loop : plan.loops) {
    const auto first = static_cast<size_t>(loop.first);
    if (next < first) AddSection(next, first, 1);
    next = first + static_cast<size_t>(loop.count);
    AddSection(first, next, loop.repeats);
  }
  if (next < plan.steps.size()) AddSection(next, plan.steps.size(), 1);
}

// What is no constant is the same for all.
void CpuPlan::PrepareNodes() {
  if (copies_ == nullptr) return;
  nodes_ = {.copies = copies_.get(), .pointers = pointers_.size()};
  const ir::Plan& plan = *model_.plan;
  for (int copy = 0; copy < copies_->count(); ++copy) {
    std::vector<void*> set(pointers_.begin(),
                           pointers_.begin() + static_cast<std::ptrdiff_t>(nodes_.pointers));
    for (size_t step = 0; step < plan.steps.size(); ++step) {
      size_t at = first_pointer_[step];
      for (const int32_t id : plan.steps[step].buffers) {
        void*& pointer = set[at++];
        if (id == ir::kNoPlanBuffer) continue;
        const ir::PlanBuffer& buffer = plan.buffers[static_cast<size_t>(id)];
        if (buffer.kind == ir::PlanBufferKind::kConstant)
          pointer = copies_->data(copy) + buffer.offset;
      }
    }
    if (copy == 0) {
      pointers_ = std::move(set);
    } else {
      pointers_.insert(pointers_.end(), set.begin(), set.end());
    }
  }
}

void CpuPlan::SetPointer(size_t pointer, void* memory) {
  for (size_t at = pointer; at < pointers_.size();) {
    pointers_[at] = memory;
    if (nodes_.copies == nullptr) return;
    at += nodes_.pointers;
  }
}

void CpuPlan::AddSection(size_t first, size_t end, int64_t repeats) {
  const ir::Plan& plan = *model_.plan;
  Section section{.first = first, .end = end, .repeats = repeats, .first_moving = moving_.size()};
  for (size_t step = first; step < end; ++step) {
    size_t pointer = first_pointer_[step];
    for (const int32_t id : plan.steps[step].buffers) {
      const size_t at = pointer++;
      if (id == ir::kNoPlanBuffer) continue;
      const ir::PlanBuffer& buffer = plan.buffers[static_cast<size_t>(id)];
      const auto offset = static_cast<size_t>(buffer.offset);
      if (buffer.advance_bytes == 0) continue;
      if (buffer.kind == ir::PlanBufferKind::kArena) {
        moving_.push_back({.pointer = at,
                           .arena = arena_.data() + offset,
                           .advance = static_cast<size_t>(buffer.advance_bytes)});
        continue;
      }
      const bool input = buffer.kind == ir::PlanBufferKind::kInput;
      const size_t io = (input ? 0 : plan.inputs.size()) + offset;
      moving_.push_back({.pointer = at, .io = io, .advance = parts_[io].pitch});
    }
  }
  section.end_moving = moving_.size();
  sections_.push_back(section);
}

void CpuPlan::Move(const Section& section, int64_t repeat) {
  for (size_t i = section.first_moving; i < section.end_moving; ++i) {
    const Moving& moving = moving_[i];
    std::byte* const first =
        moving.arena != nullptr ? moving.arena : static_cast<std::byte*>(io_[moving.io]);
    SetPointer(moving.pointer, first + static_cast<size_t>(repeat) * moving.advance);
  }
}

size_t CpuPlan::StagedBytes(size_t io, size_t bytes) const {
  const Parts& parts = parts_[io];
  return parts.bytes == 0 ? bytes : bytes / parts.bytes * parts.pitch;
}

size_t CpuPlan::PartBytes(size_t io, size_t bytes) const {
  return parts_[io].bytes == 0 ? bytes : parts_[io].bytes;
}

bool CpuPlan::CanUse(size_t io, const void* data) const {
  return data != nullptr && IsAligned(data) && parts_[io].bytes == parts_[io].pitch;
}

Result<void*> CpuPlan::Stage(size_t io, size_t bytes) {
  if (stages_[io].data() == nullptr) {
    HONE_ASSIGN_OR_RETURN(stages_[io], Region::Allocate(bytes, "a copy of an unaligned buffer"));
  }
  return static_cast<void*>(stages_[io].data());
}

Status CpuPlan::BindBuffers(std::span<const InputBuffer> inputs,
                            std::span<const OutputBuffer> outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    // The code only reads inputs; its pointers have one type.
    io_[i] = const_cast<void*>(inputs[i].data);
    if (CanUse(i, io_[i])) continue;
    HONE_ASSIGN_OR_RETURN(io_[i], Stage(i, StagedBytes(i, inputs[i].bytes)));
    const size_t part = PartBytes(i, inputs[i].bytes);
    CopyParts(inputs[i].data, part, io_[i], StagedBytes(i, part), part, inputs[i].bytes);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t io = inputs.size() + i;
    io_[io] = outputs[i].data;
    if (CanUse(io, io_[io])) continue;
    HONE_ASSIGN_OR_RETURN(io_[io], Stage(io, StagedBytes(io, outputs[i].bytes)));
  }
  for (const Patch& patch : patches_) SetPointer(patch.pointer, io_[patch.io]);
  return {};
}

void CpuPlan::Poison(std::span<const OutputBuffer> outputs) {
  std::memset(arena_.data(), kPoison, arena_.bytes());
  std::memset(scratch_.span().data(), kPoison, scratch_.span().size());
  const size_t inputs = io_.size() - outputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t io = inputs + i;
    const size_t bytes = outputs[i].bytes;
    if (bytes == 0) continue;
    std::memset(io_[io], kPoison, io_[io] == outputs[i].data ? bytes : StagedBytes(io, bytes));
  }
}

Status CpuPlan::Run(std::span<const InputBuffer> inputs, std::span<const OutputBuffer> outputs) {
  if (threads() > 1 && ProcessNumber() != owner_) HONE_RETURN_IF_ERROR(RenewAfterFork());
  HONE_RETURN_IF_ERROR(BindBuffers(inputs, outputs));
  if (poison_) Poison(outputs);
  crew_->Begin();
  const Status status = RunMoves();
  crew_->End();
  HONE_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t io = inputs.size() + i;
    if (io_[io] == outputs[i].data) continue;
    const size_t part = PartBytes(io, outputs[i].bytes);
    CopyParts(io_[io], StagedBytes(io, part), outputs[i].data, part, part, outputs[i].bytes);
  }
  return {};
}

// A profile wants the time of each step: then no phase is joined to another step's.
void CpuPlan::PrepareMoves() {
  moves_ = PhaseOrder(*model_.plan, /*across_steps=*/clock_ == nullptr);
  for (const PhaseGroup& move : moves_) {
    first_link_.push_back(links_.size());
    for (const ir::PlanJoin& at : move.phases) {
      const auto step = static_cast<size_t>(at.step);
      const auto kernel = static_cast<size_t>(model_.plan->steps[step].kernel);
      links_.push_back({.function = model_.kernels[kernel].phase(at.phase),
                        .buffers = pointers_.data() + first_pointer_[step]});
    }
    sweeps_.emplace_back();
  }
  size_t next = 0;
  for (Section& section : sections_) {
    section.first_move = next;
    while (next < moves_.size() && static_cast<size_t>(moves_[next].step) < section.end) ++next;
    section.end_move = next;
  }
}

Status CpuPlan::RunMoves() {
  const DefaultRounding rounding;
  std::fill(step_times_ns_.begin(), step_times_ns_.end(), 0);
  for (const Section& section : sections_) {
    for (int64_t repeat = 0; repeat < section.repeats; ++repeat) {
      Move(section, repeat);
      HONE_RETURN_IF_ERROR(RunOnce(section));
    }
  }
  return {};
}

// Without helpers it would compute the same more slowly, and with steps in turn each has its time.
void CpuPlan::PrepareForks(const RunOptions& options) {
  if (clock_ != nullptr || crew_->threads() == 1) return;
  const int64_t spin_ns = crew_->has_executor() ? 0 : options.spin_ns;
  auto section = sections_.begin();
  const auto first_move = [&](int32_t step) {
    const auto before = [](const PhaseGroup& move, int32_t at) { return move.step < at; };
    return static_cast<size_t>(std::lower_bound(moves_.begin(), moves_.end(), step, before) -
                               moves_.begin());
  };
  for (const ir::PlanFork& planned : model_.plan->forks) {
    if (first_move(planned.first) == first_move(planned.end())) continue;  // nothing to do
    while (static_cast<size_t>(planned.first) >= section->end) ++section;
    if (section->end_fork == 0) section->first_fork = forks_.size();
    section->end_fork = forks_.size() + 1;
    const auto count = static_cast<int>(planned.counts.size());
    Branches& branches = forks_.emplace_back(count, crew_->threads(), spin_ns);
    branches.plan = this;
    int32_t step = planned.first;
    branches.ends.push_back(first_move(step));
    for (const int32_t steps : planned.counts) {
      step += steps;
      branches.ends.push_back(first_move(step));
    }
  }
}

Status CpuPlan::RunBranch(void* branches, int branch, Crew& crew) {
  const Branches& self = *static_cast<const Branches*>(branches);
  const auto at = static_cast<size_t>(branch);
  for (size_t move = self.ends[at]; move < self.ends[at + 1]; ++move) {
    HONE_RETURN_IF_ERROR(self.plan->RunMove(move, crew));
  }
  return {};
}

Status CpuPlan::RunOnce(const Section& section) {
  if (clock_ != nullptr) return RunTimed(section);
  size_t fork = section.first_fork;
  for (size_t move = section.first_move; move < section.end_move;) {
    while (fork < section.end_fork && forks_[fork].ends.front() < move) ++fork;
    const bool forks = fork < section.end_fork && forks_[fork].ends.front() == move;
    if (forks) crew_->AskForThreads();
    if (forks && crew_->width() > 1) {
      Branches& branches = forks_[fork];
      HONE_RETURN_IF_ERROR(branches.fork.Run(*crew_, RunBranch, &branches, fixed_shares_));
      move = branches.ends.back();
    } else {
      HONE_RETURN_IF_ERROR(RunMove(move++, *crew_));
    }
  }
  return {};
}

Status CpuPlan::RunTimed(const Section& section) {
  size_t move = section.first_move;
  int64_t before_ns = clock_->NowNs();
  for (size_t step = section.first; step < section.end; ++step) {
    for (; move < section.end_move && static_cast<size_t>(moves_[move].step) == step; ++move) {
      HONE_RETURN_IF_ERROR(RunMove(move, *crew_));
    }
    const int64_t after_ns = clock_->NowNs();
    step_times_ns_[step] += after_ns - before_ns;
    before_ns = after_ns;
  }
  return {};
}

Status CpuPlan::RunMove(size_t number, Crew& crew) {
  const PhaseGroup& move = moves_[number];
  const auto first = static_cast<size_t>(move.step);
  const ir::PlanStep& step = model_.plan->steps[first];
  const bool fixed = fixed_shares_ && &crew == crew_.get();  // who helps a branch is never sure
  if (move.kind == PhaseGroup::Kind::kExtern) {
    const Status status =
        FindExtern(step.extern_name)->run(step, pointers_.data() + first_pointer_[first]);
    if (status.ok()) return {};
    return ExternError(*model_.plan, first, status);
  }
  crew.AskForThreads();
  if (move.kind == PhaseGroup::Kind::kRepeated) {
    const Kernel& kernel = model_.kernels[static_cast<size_t>(step.kernel)];
    const KernelFailure failure =
        kernel.RunStep(kernel.artifact().steps[static_cast<size_t>(move.number)],
                       {.buffers = pointers_.data() + first_pointer_[first],
                        .scratch = &scratch_,
                        .nodes = nodes_,
                        .max_threads = step.threads,
                        .fixed = fixed},
                       crew);
    if (failure.ok()) [[likely]]
      return {};
    return KernelError(*model_.plan, first, failure);
  }
  const Sweep::Failure failure =
      sweeps_[number].Run({.links = {links_.data() + first_link_[number], move.phases.size()},
                           .extent = move.extent,
                           .threads = move.threads,
                           .scratch = &scratch_,
                           .nodes = nodes_,
                           .fixed = fixed},
                          crew);
  if (failure.ok()) [[likely]]
    return {};
  const ir::PlanJoin& at = move.phases[static_cast<size_t>(failure.link)];
  return KernelError(*model_.plan, static_cast<size_t>(at.step),
                     {.result = failure.result, .phase = at.phase});
}

}  // namespace hone::runtime
