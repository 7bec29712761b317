#include "runtime/kernel.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>

#include "base/core/status_macros.h"
#include "runtime/message.h"

namespace hone::runtime {
namespace {

// Scratches of two threads never share a page, hence no cache line that a prefetcher pairs.
constexpr size_t kScratchUnit = 4096;

// Less than this is not worth a second thread's round trip.
constexpr float kAloneNs = 800;
// A part takes this to twice this where the extent allows: so little waits for a thread that is
// preempted, and a claim (some ten ns) is no cost.
constexpr float kPartNs = 25'000;

/// First iteration of part i of n: floor(i * extent / n), without that product, which may not fit.
int64_t FirstOf(int64_t extent, int part, int n) {
  return extent / n * part + extent % n * part / n;
}

/// A thread that is preempted makes single times long, none makes them short.
void Learn(float sample_ns, std::atomic<float>& known_ns) {
  constexpr float kGrowth = 1.25F;
  const float known = known_ns.load(std::memory_order_relaxed);
  known_ns.store(known == 0 ? sample_ns : std::min(sample_ns, known * kGrowth),
                 std::memory_order_relaxed);
}

}  // namespace

Result<Scratch> Scratch::Allocate(int threads, int64_t bytes) {
  Scratch scratch;
  scratch.stride_ = (static_cast<size_t>(bytes) + kScratchUnit - 1) / kScratchUnit * kScratchUnit;
  HONE_ASSIGN_OR_RETURN(scratch.region_,
                        Region::Allocate(scratch.stride_ * static_cast<size_t>(threads),
                                         Message("the scratch of ", threads, " threads")));
  return scratch;
}

Result<Scratch> Scratch::AllocateGuarded(int threads, int64_t bytes) {
  constexpr size_t kAlignment = 64;
  const size_t used = (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  const size_t body = (used + kScratchUnit - 1) / kScratchUnit * kScratchUnit;
  Scratch scratch;
  scratch.stride_ = body + kScratchUnit;
  scratch.offset_ = body - used;
  HONE_ASSIGN_OR_RETURN(scratch.region_,
                        Region::Allocate(scratch.stride_ * static_cast<size_t>(threads),
                                         Message("the scratch of ", threads, " threads")));
  for (int thread = 0; thread < threads; ++thread) {
    std::byte* const guard =
        scratch.region_.data() + static_cast<size_t>(thread) * scratch.stride_ + body;
    if (::mprotect(guard, kScratchUnit, PROT_NONE) != 0) {
      return Status(StatusCode::kResourceExhausted, "cannot guard the scratch of a thread");
    }
  }
  return scratch;
}

Result<Kernel> Kernel::Resolve(const ir::Artifact& artifact, const SharedObject& code) {
  Kernel kernel;
  kernel.artifact_ = &artifact;
  for (const ir::ArtifactPhase& phase : artifact.phases) {
    HONE_ASSIGN_OR_RETURN(void* const address, code.Symbol(phase.symbol));
    kernel.phases_.push_back(reinterpret_cast<ir::PhaseFunction>(address));
  }
  kernel.iteration_ns_ = std::make_unique<std::atomic<float>[]>(kernel.phases_.size());
  return kernel;
}

int64_t Kernel::scratch_bytes() const {
  int64_t bytes = 0;
  for (const ir::ArtifactPhase& phase : artifact_->phases) {
    bytes = std::max(bytes, phase.scratch_bytes);
  }
  return bytes;
}

KernelFailure Kernel::Run(const Arguments& arguments, Crew& crew) const {
  crew.AskForThreads();
  for (const ir::ArtifactStep& step : artifact_->steps) {
    for (int64_t repeat = 0; repeat < step.repeats; ++repeat) {
      for (int32_t phase = step.first; phase < step.first + step.count; ++phase) {
        const int32_t result = RunPhase(static_cast<size_t>(phase), repeat, arguments, crew);
        if (result == 0) [[likely]]
          continue;
        return {.result = result, .phase = phase};
      }
    }
  }
  return {};
}

int32_t Kernel::RunPhase(size_t phase, int64_t repeat, const Arguments& arguments,
                         Crew& crew) const {
  const ir::ArtifactPhase& shape = artifact_->phases[phase];
  const int64_t extent = shape.parallel_extent;
  if (extent == 0) return 0;
  const int threads = std::min({shape.threads, arguments.max_threads, crew.width()});
  Work work{.slots = static_cast<int>(std::min<int64_t>(threads, extent)),
            .fixed = arguments.fixed};
  const float iteration_ns = iteration_ns_[phase].load(std::memory_order_relaxed);
  const float all_ns = iteration_ns * static_cast<float>(extent);
  if (!work.fixed && iteration_ns > 0) {
    if (all_ns < kAloneNs) work.slots = 1;
    const int64_t most = std::min<int64_t>(Lane::kMaxParts, extent / work.slots);
    const float parts = all_ns / static_cast<float>(work.slots) / kPartNs;
    if (work.slots > 1 && parts >= 2) {
      work.parts = static_cast<int>(std::min(parts, static_cast<float>(most)));
    }
  }
  const int n = work.slots * work.parts;

  std::atomic<int32_t> result{0};
  const auto part = [&](int number, int slot) {
    const ir::HoneCall call{.buffers = arguments.buffers,
                            .scratch = arguments.scratch->Of(slot),
                            .begin = FirstOf(extent, number, n),
                            .end = FirstOf(extent, number + 1, n),
                            .step = repeat,
                            .thread = slot};
    const int32_t failure = phases_[phase](&call);
    if (failure == 0) [[likely]]
      return;
    // One of several failures is told: the first to arrive.
    int32_t none = 0;
    result.compare_exchange_strong(none, failure, std::memory_order_relaxed);
  };
  work.context = const_cast<void*>(static_cast<const void*>(&part));
  work.part = [](void* context, int number, int slot) {
    (*static_cast<decltype(part)*>(context))(number, slot);
  };
  const auto expected_ns = static_cast<int64_t>(all_ns / static_cast<float>(work.slots));
  if (work.fixed || (iteration_ns > 0 && !crew.IsTimeToMeasure())) {
    crew.Run(work, expected_ns);
    return result.load(std::memory_order_relaxed);
  }
  Crew::Own own;
  crew.Run(work, expected_ns, &own);
  if (own.parts > 0) {
    const float iterations =
        static_cast<float>(extent) * static_cast<float>(own.parts) / static_cast<float>(n);
    Learn(std::max(static_cast<float>(own.ns), 1.0F) / iterations, iteration_ns_[phase]);
  }
  return result.load(std::memory_order_relaxed);
}

}  // namespace hone::runtime
