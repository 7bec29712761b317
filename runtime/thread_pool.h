#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/core/result.h"

namespace hone::runtime {

/// Persistent threads for fork-join work of microseconds. A worker that has just worked spins for
/// the next job (a round trip of 0.1 to 0.3 us), then yields, then sleeps on a futex; a job wakes
/// only the workers it takes. The thread that calls Run is thread 0.
///
/// Thread-safe: concurrent calls of Run take turns. Run must not be called from inside a job, nor
/// in a child process after fork (the workers do not exist there).
class ThreadPool {
 public:
  struct Options {
    int threads = 1;  ///< including the caller's; 1 to kMaxThreads
    /// CPU of each worker: worker i (from 1) runs on cpus[i % size]. Empty: the scheduler decides.
    std::vector<int> cpus;
  };

  /// kResourceExhausted when threads cannot be started, kInvalidArgument for CPUs that are not
  /// allowed.
  static Result<std::unique_ptr<ThreadPool>> Create(const Options& options);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls job(context, i) for every i in [0, n), i on thread i, and returns when all have
  /// returned; 1 <= n <= threads(). What the caller wrote before is visible to the job, and what
  /// the job wrote is visible after. With n == 1 it is a plain call. The job must not throw.
  using Job = void (*)(void* context, int thread);
  void Run(int n, Job job, void* context);

  /// The same for anything callable with an int.
  template <typename Function>
  void Run(int n, const Function& function) {
    const Job job = [](void* context, int thread) {
      (*static_cast<const Function*>(context))(thread);
    };
    Run(n, job, const_cast<void*>(static_cast<const void*>(&function)));
  }

 private:
  explicit ThreadPool(int threads) : sleepers_(static_cast<size_t>(threads)) {}
  void WorkerMain(int thread, int cpu, std::atomic<int>* started);
  uint32_t WaitForTicket(int thread, uint32_t seen, int* patience);
  void WaitForAll();
  void Publish(uint32_t n);

  // `ticket_` is the futex word: a job's number (upper bits) and how many threads it takes (lower
  // bits), so a thread that is not needed never touches the fields of a job that may be gone. A
  // number may come round again: whoever missed the jobs between was needed by none of them, since
  // each job waits for the threads it takes.
  static constexpr uint32_t kCountBits = 11;
  static constexpr uint32_t kCountMask = (1u << kCountBits) - 1;
  static constexpr uint32_t kQuit = kCountMask;

  alignas(64) std::atomic<uint32_t> ticket_{0};
  alignas(64) std::atomic<uint32_t> pending_{0};  // threads that have not finished; futex word
  std::atomic<uint32_t> caller_sleeps_{0};
  alignas(64) Job job_ = nullptr;
  void* context_ = nullptr;

  struct alignas(64) Sleeper {
    std::atomic<uint32_t> asleep{0};  // futex word
  };
  std::vector<Sleeper> sleepers_;  // by thread; 0 is unused

  std::mutex run_mutex_;
  std::vector<std::thread> workers_;
};

}  // namespace hone::runtime
