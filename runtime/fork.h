#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/core/result.h"
#include "runtime/crew.h"

namespace hone::runtime {

/// Branches of a plan (ir::PlanFork) beside each other. Each is led by the first thread of a crew
/// that comes, whole, as if it were alone; threads that find no branch without a leader help those
/// of others with their parts, and leave when nothing comes for a while. The calling thread can do
/// everything: nobody waits for a thread that has not begun. One run at a time.
class Fork {
 public:
  /// Runs a branch; called once for each, by any thread of the crew. What it needs of a crew is the
  /// given one's. May throw std::bad_alloc.
  using Branch = Status (*)(void* context, int branch, Crew& crew);

  /// `threads` is the crew's; one that helps spins for `spin_ns` before it leaves. The clock must
  /// outlive it.
  Fork(int branches, int threads, int64_t spin_ns, LaneObserver* observer = nullptr,
       const MonotonicClock& clock = ThreadPool::SystemClock());

  /// Returns when all branches have ended, also where one fails: then with what the first of those
  /// says. With `fixed` no thread leaves, and each of `crew`'s is waited for: for measurements.
  Status Run(Crew& crew, Branch branch, void* context, bool fixed);

 private:
  struct Place {
    Place(int threads, int64_t spin_ns, LaneObserver* observer, const MonotonicClock& clock)
        : crew(threads, spin_ns, observer, clock) {}
    Crew crew;
    Status result;
  };

  void Join(int part, int thread);
  void Lead(size_t branch, int thread);
  void Help(int thread);

  const int64_t spin_ns_;
  const MonotonicClock& clock_;
  std::deque<Place> places_;  // by branch

  // What belongs to this run.
  Branch branch_ = nullptr;
  void* context_ = nullptr;
  bool fixed_ = false;
  std::atomic<size_t> next_{0};   // branch without a leader
  std::atomic<size_t> ended_{0};  // branches
  std::atomic<int> helpers_{0};

  float least_ns_ = 0;  // what a run takes; 0: not known
};

}  // namespace hone::runtime
