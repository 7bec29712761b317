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
  explicit ThreadPool(int threads) : states_(static_cast<size_t>(threads)) {}
  void WorkerMain(int thread, int cpu, std::atomic<int>* started);
  uint64_t WaitForTicket(int thread, uint64_t seen, int* patience);
  bool IsDone(uint64_t ticket) const;
  void WaitUntilDone(uint64_t ticket);
  uint64_t Publish(uint64_t n);

  // A ticket is a job's number (upper bits) and how many threads it takes (lower bits), so a thread
  // that is not needed never touches the fields of a job that may be gone; one that is needed holds
  // the job up until it is done. 52 bits of numbers do not come round.
  static constexpr int kCountBits = 12;
  static constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;
  static constexpr uint64_t kQuit = kCountMask;

  // One cache line each way: the job goes out with its ticket, the answer comes back alone.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  Job job_ = nullptr;
  void* context_ = nullptr;

  struct alignas(64) Worker {
    std::atomic<uint64_t> done{0};    // the last ticket this thread has worked for
    std::atomic<uint32_t> asleep{0};  // futex word
  };
  std::vector<Worker> states_;  // by thread; 0 is unused

  alignas(64) std::atomic<uint32_t> caller_sleeps_{0};  // futex word

  std::mutex run_mutex_;
  std::vector<std::thread> workers_;
};

}  // namespace hone::runtime
