#include "measure/cpu/cpu_candidate.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/core/flush_lines.h"
#include "base/core/status_macros.h"

namespace hone::measure {
namespace {

// More than this leaves the caches by itself.
constexpr size_t kMaxFlushBytes = size_t{64} << 20;
/// Where the part of the work is that is run, in turns. Borders, at both ends, are unlike the rest.
constexpr std::array<double, 6> kPlaces = {0.5, 0.2, 0.8, 0.35, 0.65, 0.1};
constexpr double kLeastPart = 1e-6;

double PartOf(int64_t ns, double whole_ns) {
  return std::clamp(static_cast<double>(ns) / std::max(whole_ns, 1.0), kLeastPart, 1.0);
}

}  // namespace

Result<std::unique_ptr<CpuCandidate>> CpuCandidate::Load(const PrepareJob& job,
                                                         std::shared_ptr<HostData> data,
                                                         runtime::Crew& crew,
                                                         const MonotonicClock& clock) {
  std::unique_ptr<CpuCandidate> loaded(new CpuCandidate(std::move(data), crew, clock));
  loaded->artifact_ = job.kernel.artifact;
  loaded->threads_ = std::clamp(job.threads, 1, crew.threads());
  loaded->part_ = job.part;
  HONE_RETURN_IF_ERROR(loaded->data_->Check(loaded->artifact_));
  HONE_ASSIGN_OR_RETURN(
      loaded->code_,
      runtime::SharedObject::Load(std::as_bytes(std::span(job.kernel.shared_object)), "candidate"));
  HONE_ASSIGN_OR_RETURN(loaded->kernel_,
                        runtime::Kernel::Resolve(loaded->artifact_, loaded->code_));
  HONE_ASSIGN_OR_RETURN(loaded->prologue_, loaded->data_->PrologueOf(job, crew));
  HONE_RETURN_IF_ERROR(loaded->AllocateWorkspace());
  return loaded;
}

Status CpuCandidate::AllocateWorkspace() {
  if (part_ == 1) {
    HONE_ASSIGN_OR_RETURN(workspace_, AllocateAll(artifact_.workspace));
  }
  const int64_t bytes = kernel_.scratch_bytes();
  HONE_ASSIGN_OR_RETURN(scratch_, runtime::Scratch::AllocateGuarded(crew_.threads(), bytes));
  for (int thread = 0; thread < crew_.threads(); ++thread) {
    Poison(ir::DType::kF32,
           {static_cast<std::byte*>(scratch_.Of(thread)), static_cast<size_t>(bytes)});
  }
  return {};
}

std::vector<void*> CpuCandidate::Pointers(const std::vector<GuardedBuffer>& outputs) const {
  std::vector<void*> pointers;
  using List = const std::vector<GuardedBuffer>*;
  for (List list : {List(&data_->inputs), List(&data_->constants), prologue_.get(), &outputs,
                    List(&workspace_)}) {
    for (const GuardedBuffer& buffer : *list) pointers.push_back(buffer.data());
  }
  return pointers;
}

Status CpuCandidate::Run(const std::vector<void*>& pointers) const {
  // What a sample times is the work of so many threads, each with its share, whoever else runs.
  return StatusOf(kernel_.Run(
      {.buffers = pointers.data(), .scratch = &scratch_, .max_threads = threads_, .fixed = true},
      crew_));
}

Status CpuCandidate::RunForCheck(const std::vector<GuardedBuffer>& outputs) {
  if (part_ < 1) {
    HONE_ASSIGN_OR_RETURN(const PartTimes times, RunPartAt(kPlaces[0], &outputs));
    part_run_ = PartOf(times.ns, times.whole_ns);
    return {};
  }
  const std::vector<void*> pointers = Pointers(outputs);
  const int64_t start_ns = clock_.NowNs();
  HONE_RETURN_IF_ERROR(Run(pointers));
  check_ns_ = clock_.NowNs() - start_ns;
  return {};
}

void CpuCandidate::FlushConstants() const {
  size_t total = 0;
  for (const ir::ArtifactBuffer& constant : artifact_.constants) {
    total += static_cast<size_t>(constant.bytes);
  }
  for (const GuardedBuffer& buffer : *prologue_) total += buffer.span().size();
  if (total > kMaxFlushBytes) return;
  for (size_t i = 0; i < artifact_.constants.size(); ++i) {
    FlushLines(data_->constants[i].span().first(static_cast<size_t>(artifact_.constants[i].bytes)));
  }
  for (const GuardedBuffer& buffer : *prologue_) FlushLines(buffer.span());
}

Result<PartTimes> CpuCandidate::RunPartAt(double place,
                                          const std::vector<GuardedBuffer>* outputs) const {
  HONE_ASSIGN_OR_RETURN(std::vector<void*> own, data_->ForParts(artifact_));
  for (size_t i = 0; outputs != nullptr && i < outputs->size(); ++i) own[i] = (*outputs)[i].data();
  // There is no workspace of its own.
  std::vector<void*> pointers = Pointers({});
  pointers.insert(pointers.end(), own.begin(), own.end());
  if (threads_ > 1) crew_.RunOnEach(threads_, [](int) {});
  PartTimes times;
  HONE_RETURN_IF_ERROR(
      StatusOf(RunPart(kernel_, {.share = part_, .place = place},
                       {.buffers = pointers.data(), .scratch = &scratch_, .max_threads = threads_},
                       crew_, clock_, &times)));
  return times;
}

// At another place each time, so that activations are no warmer than in a run of the whole.
// Constants stay: a whole run reads them cold but once.
Result<Race> CpuCandidate::TimePart(const TimingPolicy& policy) {
  Status failure;
  size_t turn = 0;
  double whole_ns = 0;
  Race race = RunRace(policy, kNoWarmupFromNs, [&]() -> int64_t {
    const Result<PartTimes> times = RunPartAt(kPlaces[++turn % kPlaces.size()], nullptr);
    failure = failure.ok() ? times.status() : failure;
    if (!times.ok()) return 0;
    whole_ns += times->whole_ns;
    return times->ns;
  });
  HONE_RETURN_IF_ERROR(failure);
  race.part = PartOf(race.timed_ns, whole_ns);
  return race;
}

Result<Race> CpuCandidate::Time(const TimingPolicy& policy) {
  if (part_ < 1) return TimePart(policy);
  if (outputs_.size() != artifact_.outputs.size()) {
    HONE_ASSIGN_OR_RETURN(outputs_, AllocateAll(artifact_.outputs));
  }
  const std::vector<void*> pointers = Pointers(outputs_);
  return RunRace(policy, check_ns_, [&] {
    if (policy.cold_constants) FlushConstants();
    // In a model the workers have just left another kernel: they are awake.
    if (threads_ > 1) crew_.RunOnEach(threads_, [](int) {});
    const int64_t start_ns = clock_.NowNs();
    static_cast<void>(Run(pointers));
    return clock_.NowNs() - start_ns;
  });
}

}  // namespace hone::measure
