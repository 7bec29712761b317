#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "runtime/futex.h"
#include "runtime/lane.h"

namespace hone::runtime {

/// Takes `here` from the CPUs that a thread may use, and puts back `barred`, which was taken before
/// (-1: none was). False: it may not use `here`, or nothing else; then the set is not to be used.
bool TakeCpu(int here, int barred, cpu_set_t& allowed);

/// The sleep of a thread that waits for work. It is woken away from the CPU of who wakes it, where
/// it fell asleep on that one or in a virtual machine: the system might leave both there, for as
/// long as a run takes, beside idle CPUs. Its set of allowed CPUs lacks that one until it goes on.
///
/// Where several threads want it awake, the first of them wakes it. The sleeper goes on only when
/// that thread is done with its set of CPUs, so that two threads never change the set at once.
class Sleeper {
 public:
  /// For tests: where threads stop.
  void Observe(LaneObserver* observer) { observer_ = observer; }
  /// By the thread, before anybody wakes it: it may be moved to other CPUs.
  void MayMove(pid_t id) { id_.store(id, std::memory_order_relaxed); }

  /// By the thread, on seat `slot`: returns when has_work() says so. What has_work reads is written
  /// before WakeIfAsleep, both sequentially consistent.
  template <typename HasWork>
  void Sleep(const HasWork& has_work, const std::atomic<int>& slot) {
    cpu_.store(::sched_getcpu(), std::memory_order_relaxed);
    for (bool came = false; !came;) {
      Reach(LaneObserver::Point::kBeforeSleep, slot);
      word_.store(kAsleep, std::memory_order_seq_cst);
      came = has_work();
      if (!came) {
        Reach(LaneObserver::Point::kBeforeSleep, slot);
        FutexWait(word_, kAsleep);
        Reach(LaneObserver::Point::kAfterSleep, slot);
      }
      GetUp();
      came = came || has_work();
    }
    Unbar();
  }

  bool IsAsleep() const { return word_.load(std::memory_order_seq_cst) == kAsleep; }
  /// By a thread on seat `slot`.
  void WakeIfAsleep(int slot);

 private:
  void GetUp();
  void Bar();
  void Unbar();
  void Reach(LaneObserver::Point point, int slot) const {
    if (observer_ != nullptr) [[unlikely]]
      observer_->At(point, slot);
  }

  std::atomic<uint32_t> word_{kAwake};  // futex word: the thread alone puts it to kAsleep
  std::atomic<pid_t> id_{0};            // 0: it stays on its CPU
  std::atomic<int> cpu_{-1};            // where it fell asleep
  std::atomic<int> barred_{-1};         // the CPU that it was woken away from, and may use again
  LaneObserver* observer_ = nullptr;
};

}  // namespace hone::runtime
