#include "runtime/sweep.h"

#include <algorithm>

#include "runtime/least_time.h"

namespace hone::runtime {
namespace {

// Less than this is not worth a second thread's round trip.
constexpr float kAloneNs = 800;
// A part takes this to twice this where the extent allows: so little waits for a thread that is
// preempted, and a claim (some ten ns) is no cost.
constexpr float kPartNs = 25'000;
// Parts of a slot where it is not known what an iteration takes, and there are as many.
constexpr int kFirstParts = 8;

/// First iteration of part i of n: floor(i * extent / n), without that product, which may not fit.
int64_t FirstOf(int64_t extent, int part, int n) {
  return extent / n * part + extent % n * part / n;
}

}  // namespace

Work Sweep::Cut(const Arguments& arguments, const Crew& crew) const {
  const int threads = std::min(arguments.threads, crew.width());
  Work work{.slots = static_cast<int>(std::min<int64_t>(threads, arguments.extent)),
            .fixed = arguments.fixed};
  const float iteration_ns = iteration_ns_.load(std::memory_order_relaxed);
  if (work.fixed) return work;
  if (iteration_ns == 0) {
    if (work.slots > 1 && arguments.extent / work.slots >= kFirstParts) work.parts = kFirstParts;
    return work;
  }
  const float all_ns = iteration_ns * static_cast<float>(arguments.extent);
  if (all_ns < kAloneNs) work.slots = 1;
  const int64_t most = std::min<int64_t>(Lane::kMaxParts, arguments.extent / work.slots);
  const float parts = all_ns / static_cast<float>(work.slots) / kPartNs;
  if (work.slots > 1 && parts >= 2) {
    work.parts = static_cast<int>(std::min(parts, static_cast<float>(most)));
  }
  return work;
}

Sweep::Failure Sweep::Run(const Arguments& arguments, Crew& crew) {
  const int64_t extent = arguments.extent;
  if (extent == 0) return {};
  Work work = Cut(arguments, crew);
  const int n = work.slots * work.parts;

  std::atomic<uint64_t> failed{0};  // the link and its result
  const auto part = [&](int number, int slot) {
    const int thread = crew.ThreadOf(slot);
    ir::HoneCall call{.buffers = nullptr,
                      .scratch = arguments.scratch->Of(thread),
                      .begin = FirstOf(extent, number, n),
                      .end = FirstOf(extent, number + 1, n),
                      .step = arguments.repeat,
                      .thread = thread};
    const size_t shift = arguments.nodes.OfThisThread();
    for (size_t link = 0; link < arguments.links.size(); ++link) {
      call.buffers = arguments.links[link].buffers + shift;
      const int32_t result = arguments.links[link].function(&call);
      if (result == 0) [[likely]]
        continue;
      // One of several failures is told: the first to arrive.
      uint64_t none = 0;
      failed.compare_exchange_strong(none, (uint64_t{link} << 32) | static_cast<uint32_t>(result),
                                     std::memory_order_relaxed);
      return;
    }
  };
  work.context = const_cast<void*>(static_cast<const void*>(&part));
  work.part = [](void* context, int number, int slot) {
    (*static_cast<decltype(part)*>(context))(number, slot);
  };
  const float iteration_ns = iteration_ns_.load(std::memory_order_relaxed);
  const auto expected_ns = static_cast<int64_t>(iteration_ns * static_cast<float>(extent) /
                                                static_cast<float>(work.slots));
  const bool measures = !work.fixed && (iteration_ns == 0 || crew.IsTimeToMeasure());
  Crew::Own own;
  crew.Run(work, expected_ns, measures ? &own : nullptr);
  if (own.parts > 0) {
    const float iterations =
        static_cast<float>(extent) * static_cast<float>(own.parts) / static_cast<float>(n);
    const float sample_ns = std::max(static_cast<float>(own.ns), 1.0F) / iterations;
    iteration_ns_.store(LeastTime(iteration_ns, sample_ns), std::memory_order_relaxed);
  }
  const uint64_t failure = failed.load(std::memory_order_relaxed);
  return {.result = static_cast<int32_t>(failure & 0xffffffff),
          .link = static_cast<int32_t>(failure >> 32)};
}

}  // namespace hone::runtime
