#include "measure/cpu/part_run.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace hone::measure {
namespace {

/// `share` of so many, at least one.
int64_t ShareOf(int64_t all, double share) {
  return std::clamp<int64_t>(std::llround(share * static_cast<double>(all)), 1, all);
}

}  // namespace

runtime::KernelFailure RunPart(const runtime::Kernel& kernel, const PartPlace& part,
                               const runtime::Kernel::Arguments& arguments, runtime::Crew& crew,
                               const MonotonicClock& clock, PartTimes* times) {
  const ir::Artifact& artifact = kernel.artifact();
  for (const ir::ArtifactStep& step : artifact.steps) {
    const int64_t repeats = ShareOf(std::max<int64_t>(step.repeats, 1), part.share);
    for (int64_t r = 0; r < repeats && step.repeats > 0; ++r) {
      for (int32_t number = step.first; number < step.first + step.count; ++number) {
        const ir::ArtifactPhase& phase = artifact.phases[static_cast<size_t>(number)];
        const int64_t extent = phase.parallel_extent;
        if (extent == 0) continue;
        const auto slots = static_cast<int>(
            std::min<int64_t>({phase.threads, arguments.max_threads, crew.width(), extent}));
        // A repeated step runs fewer repeats: what one leaves the next one reads.
        const int64_t longest = (extent + slots - 1) / slots;
        const int64_t most = step.repeats > 1 ? longest : ShareOf(longest, part.share);
        std::atomic<int32_t> failed{0};
        const int64_t start_ns = clock.NowNs();
        crew.RunOnEach(slots, [&](int slot) {
          const int64_t first = extent / slots * slot + extent % slots * slot / slots;
          const int64_t end = extent / slots * (slot + 1) + extent % slots * (slot + 1) / slots;
          const int64_t count = std::min(most, end - first);
          const auto begin =
              first + static_cast<int64_t>(part.place * static_cast<double>(end - first - count));
          const int thread = crew.ThreadOf(slot);
          const ir::HoneCall call{.buffers = arguments.buffers,
                                  .scratch = arguments.scratch->Of(thread),
                                  .begin = begin,
                                  .end = begin + count,
                                  .step = r,
                                  .thread = thread};
          const int32_t result = kernel.phase(number)(&call);
          if (result != 0) failed.store(result, std::memory_order_relaxed);
        });
        const int64_t took_ns = clock.NowNs() - start_ns;
        if (failed != 0) return {.result = failed, .phase = number};
        times->ns += took_ns;
        times->whole_ns += static_cast<double>(took_ns) * static_cast<double>(longest) /
                           static_cast<double>(most) * static_cast<double>(step.repeats) /
                           static_cast<double>(repeats);
      }
    }
  }
  return {};
}

}  // namespace hone::measure
