#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "runtime/lane.h"
#include "runtime/process_number.h"
#include "runtime/sleeper.h"

namespace hone::runtime {

class Crew;

/// Threads for work of microseconds, lent to crews. A thread that has just worked spins for the
/// next job (a round trip of 0.1 to 0.3 us), for tens of microseconds and for less when that did
/// not pay lately, then sleeps on a futex.
///
/// Each crew that runs has as many threads as the others, its caller included; one that ran within
/// the last 2 ms counts, unless its caller runs another one now. A thread that lets a
/// crew wait for longer than the work takes, twice within 10 ms, is lent to nobody for 50 ms, and
/// for twice as long (up to 0.8 s) if that happens again soon: it does not get to run, as on a
/// machine that others use. From the first such wait on, for a second, it gives its core away
/// between parts every millisecond, so that it is not stopped within one; but not where the caller
/// is stopped time and again too: all threads share their cores there, and who gives way loses.
///
/// Thread-safe. A child process after fork has none of the threads: there it lends nobody, and ends
/// without waiting for any.
class ThreadPool {
 public:
  static constexpr int64_t kSpinNs = 50'000;

  struct Options {
    int threads = 1;  ///< including a caller's; 1 to kMaxThreads
    /// CPU of each worker: worker i (from 1) runs on cpus[i % size]. Empty: the scheduler decides.
    std::vector<int> cpus;
    int64_t spin_ns = kSpinNs;              ///< at most, before sleeping; 0: sleep at once
    const MonotonicClock* clock = nullptr;  ///< null: the system's; must outlive the pool
    LaneObserver* observer = nullptr;       ///< for tests
    void (*yield)() = nullptr;              ///< gives the core away; null: sched_yield. For tests
    /// How often the system stopped the calling thread; null: getrusage. For tests.
    int64_t (*stops)() = nullptr;
  };

  /// All threads have begun when it returns. kResourceExhausted when one cannot be started,
  /// kInvalidArgument for CPUs that are not allowed.
  static Result<std::shared_ptr<ThreadPool>> Create(const Options& options);
  /// `pool`, or in a child of the process that made it the one that takes its place there, for one
  /// crew more of `threads`: made when first asked for, where the scheduler puts its threads, which
  /// spin for as long as those of `pool`. Who asks shares it and keeps it; all together get no more
  /// threads than `pool` has. kResourceExhausted.
  static Result<std::shared_ptr<ThreadPool>> InThisProcess(std::shared_ptr<ThreadPool> pool,
                                                           int threads);
  /// Starts threads until there are so many, a caller's included; crews that run get them at their
  /// next share. kResourceExhausted: those that could be started stay.
  Status Grow(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  static const MonotonicClock& SystemClock();

  /// What the calling thread does between parts: null where it is no pool's, or is not to give way.
  static Breather* BreatherOfThisThread();

  int threads() const { return threads_.load(); }
  /// Whether this is a child of the process that made the pool.
  bool IsForked() const { return ProcessNumber() != owner_; }

 private:
  friend class Crew;

  /// How many threads one wakes at most.
  static constexpr int kWakes = 4;

  struct Worker;
  /// A lane and who works there.
  struct Table {
    Table(int seats, LaneObserver* observer)
        : lane(seats, observer), members(static_cast<size_t>(seats)) {}
    Lane lane;
    std::vector<std::atomic<Worker*>> members;  // by seat; 0 is the caller's
  };
  struct alignas(64) Worker {
    Sleeper sleeper;
    std::atomic<Table*> table{nullptr};  // where it looks for work; null: it ends
    std::atomic<int> seat{0};            // there
    bool lent = false;                   // this and what follows: under mutex_
    int64_t blamed_ns = 0;               // when a crew last had to wait for it
    bool blamed_before = false;          // and it was not left out for that
    int64_t left_out_ns = 0;             // for how long the last time
    int64_t left_out_until_ns = 0;
    std::atomic<int64_t> gives_way_until_ns{0};
    std::atomic<int> started{0};  // 1, or -1: not on its CPU
    std::thread thread;
  };

  explicit ThreadPool(const Options& options);
  Status StartLocked(int cpu);
  void WorkerMain(Worker& self, int cpu);
  class Turns;
  /// Those of a job that the thread on `seat` has to wake: each wakes kWakes others, so that the
  /// first does not have to wake all. The thread that does it is on seat `waker`.
  static void WakeBelow(Table& table, int seat, int slots, int waker);
  /// After parts of its job were done by the thread on this seat.
  static void WakeOwner(Lane& lane, int seat);

  /// Gives the crew its table and its share.
  void Join(Crew& crew);
  void Leave(Crew& crew);
  /// Shares the threads out anew.
  void Share(Crew& asking);
  /// `crew` had to wait for the thread on this seat, from then until now.
  void Blame(Crew& crew, int seat, int64_t since_ns);

  void ShareLocked(Crew* asking, int64_t now_ns);
  void Release(Crew& crew, int seat);
  void Seat(Crew& crew, int width, int64_t now_ns);

  const uint64_t owner_ = ProcessNumber();
  const MonotonicClock& clock_;
  const int64_t spin_ns_;
  LaneObserver* const observer_;
  void (*const yield_)();
  int64_t (*const stops_)();
  Table nowhere_{1, nullptr};

  std::atomic<int> threads_{1};

  std::mutex heir_mutex_;
  std::weak_ptr<ThreadPool> heir_;  // of a child process

  std::mutex mutex_;
  std::deque<Worker> workers_;                  // not moved once made
  std::vector<std::unique_ptr<Table>> tables_;  // all; late threads may look at any
  std::vector<Table*> free_tables_;
  std::vector<Crew*> crews_;
  std::vector<Crew*> running_;  // of ShareLocked, as long as crews_
  std::vector<int> widths_;     // of these
};

}  // namespace hone::runtime
