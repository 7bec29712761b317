#include "runtime/fork.h"

#include <immintrin.h>

#include <algorithm>
#include <new>

#include "runtime/least_time.h"

namespace hone::runtime {
namespace {

constexpr int kPauses = 16;  // between looks at the clock

}  // namespace

Fork::Fork(int branches, int threads, int64_t spin_ns, LaneObserver* observer,
           const MonotonicClock& clock)
    : spin_ns_(spin_ns), clock_(clock) {
  for (int branch = 0; branch < branches; ++branch)
    places_.emplace_back(threads, spin_ns, observer, clock);
}

Status Fork::Run(Crew& crew, Branch branch, void* context, bool fixed) {
  branch_ = branch;
  context_ = context;
  fixed_ = fixed;
  next_.store(0, std::memory_order_relaxed);
  ended_.store(0, std::memory_order_relaxed);
  for (Place& place : places_) {
    place.crew.SetLeader(Crew::kNobody);
    place.crew.SetHelped(false);
    place.crew.SetWhole(fixed ? nullptr : &crew);
    place.result = {};
  }
  const Work work{.part = [](void* self, int part,
                             int thread) { static_cast<Fork*>(self)->Join(part, thread); },
                  .context = this,
                  .slots = crew.width(),
                  .fixed = fixed};
  const int64_t begin_ns = clock_.NowNs();
  crew.Run(work, static_cast<int64_t>(least_ns_));
  least_ns_ = LeastTime(least_ns_, static_cast<float>(clock_.NowNs() - begin_ns));
  const auto failed =
      std::ranges::find_if(places_, [](const Place& place) { return !place.result.ok(); });
  return failed == places_.end() ? Status() : std::move(failed->result);
}

void Fork::Join(int part, int thread) {
  for (;;) {
    const size_t branch = next_.fetch_add(1, std::memory_order_relaxed);
    if (branch >= places_.size()) break;
    Lead(branch, thread);
  }
  // The part of a thread that did not come is no reason to wait.
  if (part == thread) Help(thread);
}

void Fork::Lead(size_t branch, int thread) {
  Place& place = places_[branch];
  place.crew.SetLeader(thread);
  if (helpers_.load(std::memory_order_relaxed) > 0) place.crew.SetHelped(true);
  try {
    place.result = branch_(context_, static_cast<int>(branch), place.crew);
  } catch (const std::bad_alloc&) {
    place.result = Status(StatusCode::kResourceExhausted, "out of memory");
  }
  ended_.fetch_add(1, std::memory_order_release);
}

void Fork::Help(int thread) {
  const auto all_ended = [&] { return ended_.load(std::memory_order_acquire) == places_.size(); };
  if (all_ended() || (spin_ns_ == 0 && !fixed_)) return;
  helpers_.fetch_add(1, std::memory_order_relaxed);
  for (Place& place : places_) place.crew.SetHelped(true);
  int64_t until_ns = clock_.NowNs() + spin_ns_;
  while (!all_ended()) {
    Breather* const breather = ThreadPool::BreatherOfThisThread();
    int done = 0;
    for (int i = 0; i < kPauses && done == 0; ++i) {
      for (Place& place : places_) done += place.crew.Help(thread, breather);
      _mm_pause();
    }
    const int64_t now_ns = clock_.NowNs();
    if (done > 0) until_ns = now_ns + spin_ns_;
    if (now_ns >= until_ns && !fixed_) break;
  }
  // An outdated word costs a leader its help, or some ten ns for work that nobody shares.
  if (helpers_.fetch_sub(1, std::memory_order_relaxed) > 1) return;
  for (Place& place : places_) place.crew.SetHelped(false);
}

}  // namespace hone::runtime
