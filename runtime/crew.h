#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/core/result.h"
#include "runtime/lane.h"
#include "runtime/spin_budget.h"
#include "runtime/thread_pool.h"

namespace hone::runtime {

/// Threads of somebody else. Calls body(context, i) for each i in [0, n), at any time and on any
/// thread, the calling one included, and returns when all calls have returned.
struct Executor {
  void (*parallel_for)(void* self, int32_t n, void (*body)(void* context, int32_t i),
                       void* context) = nullptr;
  void* self = nullptr;
};

/// What one caller's work is done by: the calling thread and those that a pool lends it just now.
/// Runs of several crews share the pool's threads evenly. Work never waits for a thread that has
/// not begun it. One thread at a time uses a crew.
class Crew {
 public:
  /// On `pool`; `threads`, the caller's included, is at most pool->threads().
  Crew(std::shared_ptr<ThreadPool> pool, int threads);
  /// On `executor`, whose threads may be `threads` at most.
  Crew(const Executor& executor, int threads);
  /// For a part of what another crew does, whose threads are numbered below `threads`: one of them
  /// leads, others come to help. Nobody is woken; a leader that waits spins for `spin_ns` first.
  Crew(int threads, int64_t spin_ns, LaneObserver* observer, const MonotonicClock& clock);
  /// With a pool of its own. Errors of ThreadPool::Create.
  static Result<std::unique_ptr<Crew>> Create(const ThreadPool::Options& options);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew();

  int threads() const { return threads_; }
  /// null: there is an executor, or the threads are those of another crew.
  const std::shared_ptr<ThreadPool>& pool() const { return pool_; }
  bool has_executor() const { return executor_.parallel_for != nullptr; }
  /// How many work just now: fewer where other crews run, or where threads did not get to run.
  int width() const { return width_.load(std::memory_order_relaxed); }

  /// Around a series of Run: the pool shares its threads among the crews that are between them.
  void Begin();
  /// Asks the pool for threads that the crew lacks, if it is time for that.
  void AskForThreads() {
    if (width() < threads_ && pool_ != nullptr) [[unlikely]]
      AskAgain();
  }
  void End() { running_.store(false, std::memory_order_relaxed); }

  /// Does the work and returns when all parts are done; work.slots <= threads(). What the caller
  /// wrote before is visible to the parts, what they wrote is visible after. `expected_ns` is what
  /// one slot takes by itself (0: unknown): a thread is left out for a while that lets the others
  /// wait for longer, time and again. `own` learns what the caller did.
  struct Own {
    int parts = 0;
    int64_t ns = 0;  ///< for them, without waiting
  };
  void Run(const Work& work, int64_t expected_ns = 0, Own* own = nullptr);

  // A crew for a part of the work.

  static constexpr int kNobody = -1;
  /// Whose work it is a part of from now on: a thread that lets the leader wait is left out there.
  /// null: none is.
  void SetWhole(Crew* whole) { whole_ = whole; }
  /// The thread that makes the calls of Run from now on. kNobody while no other one is in Help.
  void SetLeader(int thread) { leader_.store(thread, std::memory_order_release); }
  /// Whether it is worth the leader's while to share its work.
  void SetHelped(bool helped) { width_.store(helped ? threads_ : 1, std::memory_order_relaxed); }
  /// Does, as `thread`, what there is to do for the leader; gives how many parts. Any number of
  /// threads at any time. Between parts it breathes, if it is to.
  int Help(int thread, Breather* breather);
  /// The number of the thread that works on a slot.
  int ThreadOf(int slot) const {
    const int thread = leader_.load(std::memory_order_relaxed) + slot;
    return thread < threads_ ? thread : thread - threads_;
  }

  /// Says now and then that it is time to measure: to each of the phases that take turns, however
  /// many there are.
  bool IsTimeToMeasure() {
    if (--until_measured_ > 0) [[likely]]
      return false;
    until_measured_ = NextGap(gaps_);
    return true;
  }

  /// Calls function(slot) for each slot in [0, n), each on a thread of its own; n <= width().
  template <typename Function>
  void RunOnEach(int n, const Function& function) {
    const Work::Part part = [](void* context, int, int slot) {
      (*static_cast<const Function*>(context))(slot);
    };
    Run({.part = part,
         .context = const_cast<void*>(static_cast<const void*>(&function)),
         .slots = n,
         .fixed = true});
  }

 private:
  friend class ThreadPool;

  /// 32 to 95, not the same again and again: a fixed number of works would meet a few phases alone
  /// where a run has a multiple of it. (Knuth's MMIX generator, its upper bits.)
  static int NextGap(uint64_t& state) {
    constexpr int kLeast = 32, kShift = 58;
    state = state * 6364136223846793005U + 1442695040888963407U;
    return kLeast + static_cast<int>(state >> kShift);
  }

  void RunOnExecutor(const Work& work, Own* own);
  void AskAgain();
  bool IsWorthWaking(int64_t expected_ns);
  void WakeMembers(int slots, int64_t expected_ns, bool fixed);
  void WaitUntilDone(uint64_t ticket, const Work& work, int64_t expected_ns);
  void Blame(int late, int64_t since_ns);
  void SleepUntilDone(uint64_t ticket);

  const std::shared_ptr<ThreadPool> pool_;  // null: there is an executor, or nobody to ask
  const Executor executor_;
  const std::unique_ptr<Lane> own_lane_;
  const MonotonicClock& clock_;
  const int threads_;
  std::atomic<int> leader_{0};          // the thread of slot 0
  Crew* whole_ = nullptr;               // the leader's
  ThreadPool::Table* table_ = nullptr;  // the pool's; null: there is none
  Lane* lane_ = nullptr;                // its or our own
  SpinBudget spin_;
  uint64_t gaps_ = 0;
  int until_measured_ = 0;
  // Expected of work: that sleeping members were not woken for, how much makes it worth waking
  // them, and what members did since the last time.
  int64_t unwoken_ns_ = 0;
  int64_t worth_waking_ns_ = 4'000;
  int64_t helped_ns_ = 0;

  // Written under the pool's mutex, read by the caller at any time. An outdated value costs a
  // thread or a useless wake, never a part.
  std::atomic<int> width_{1};
  std::atomic<int64_t> ask_again_ns_{0};  // when it asks for the threads that it lacks
  std::atomic<bool> running_{false};
  std::atomic<uint64_t> runs_{0};
  std::atomic<std::thread::id> caller_{};  // of the last Begin

  // The pool's, under its mutex.
  uint64_t noted_runs_ = 0;
  int64_t noted_ns_ = 0;  // when it was last seen running
};

}  // namespace hone::runtime
