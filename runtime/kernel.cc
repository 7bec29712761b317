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

/// first[i] of thread i: floor(i * extent / n). The products fit: CheckPlan bounds both factors.
int64_t FirstOf(int64_t extent, int thread, int n) { return extent * thread / n; }

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
  return kernel;
}

int64_t Kernel::scratch_bytes() const {
  int64_t bytes = 0;
  for (const ir::ArtifactPhase& phase : artifact_->phases) {
    bytes = std::max(bytes, phase.scratch_bytes);
  }
  return bytes;
}

KernelFailure Kernel::Run(const Arguments& arguments, ThreadPool& pool) const {
  for (const ir::ArtifactStep& step : artifact_->steps) {
    for (int64_t repeat = 0; repeat < step.repeats; ++repeat) {
      for (int32_t phase = step.first; phase < step.first + step.count; ++phase) {
        const int32_t result = RunPhase(static_cast<size_t>(phase), repeat, arguments, pool);
        if (result == 0) [[likely]]
          continue;
        return {.result = result, .phase = phase};
      }
    }
  }
  return {};
}

int32_t Kernel::RunPhase(size_t phase, int64_t repeat, const Arguments& arguments,
                         ThreadPool& pool) const {
  const ir::ArtifactPhase& shape = artifact_->phases[phase];
  const ir::PhaseFunction function = phases_[phase];
  const int64_t extent = shape.parallel_extent;
  if (extent == 0) return 0;
  const int threads = std::min({shape.threads, arguments.max_threads, pool.threads()});
  const int n = static_cast<int>(std::min<int64_t>(threads, extent));

  std::atomic<int32_t> result{0};
  pool.Run(n, [&](int thread) {
    const ir::HoneCall call{.buffers = arguments.buffers,
                            .scratch = arguments.scratch->Of(thread),
                            .begin = FirstOf(extent, thread, n),
                            .end = FirstOf(extent, thread + 1, n),
                            .step = repeat,
                            .thread = thread};
    const int32_t failure = function(&call);
    if (failure == 0) [[likely]]
      return;
    // One of several failures is told: the first to arrive.
    int32_t none = 0;
    result.compare_exchange_strong(none, failure, std::memory_order_relaxed);
  });
  return result.load(std::memory_order_relaxed);
}

}  // namespace hone::runtime
