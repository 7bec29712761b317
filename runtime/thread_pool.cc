#include "runtime/thread_pool.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <system_error>

#include "base/core/check.h"
#include "base/core/cpu.h"
#include "runtime/message.h"
#include "runtime/plan_check.h"
#include "runtime/rounding.h"

namespace hone::runtime {
namespace {

// A pause takes 10 to 50 ns. Spinning covers the gaps inside a run; yielding lets other threads in
// when there are more of them than cores; sleeping is for the time between runs.
constexpr int kSpins = 2000;
constexpr int kYields = 300;
constexpr int kPatience = kSpins + kYields;

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the kernel sees the word itself");

void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected) {
  // A wrong value, a signal or a spurious return all lead back to the caller's own check.
  ::syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected,
            nullptr, nullptr, 0);
}

void FutexWake(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX,
            nullptr, nullptr, 0);
}

/// One step of waiting with so much patience left.
void Relax(int patience) {
  if (patience > kYields) {
    _mm_pause();
  } else {
    ::sched_yield();
  }
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::Create(const Options& options) {
  if (options.threads < 1 || options.threads > kMaxThreads) {
    return Invalid("a pool of ", options.threads, " threads; 1 to ", kMaxThreads, " are possible");
  }
  std::unique_ptr<ThreadPool> pool(new ThreadPool(options.threads));
  std::vector<std::atomic<int>> started(static_cast<size_t>(options.threads));
  for (int thread = 1; thread < options.threads; ++thread) {
    const auto i = static_cast<size_t>(thread);
    const int cpu = options.cpus.empty() ? -1 : options.cpus[i % options.cpus.size()];
    try {
      pool->workers_.emplace_back(&ThreadPool::WorkerMain, pool.get(), thread, cpu, &started[i]);
    } catch (const std::system_error& error) {
      return SystemError(error.code().value(),
                         Message("cannot start thread ", thread, " of ", options.threads));
    }
    // Waiting one by one costs microseconds and makes pinning errors errors of Create.
    started[i].wait(0);
    if (started[i].load() < 0) {
      return Invalid("cannot pin thread ", thread, " to CPU ", cpu, ": not an allowed CPU");
    }
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  Publish(kQuit);
  for (std::thread& worker : workers_) worker.join();
}

uint64_t ThreadPool::Publish(uint64_t n) {
  const uint64_t number = (ticket_.load(std::memory_order_relaxed) >> kCountBits) + 1;
  const uint64_t ticket = (number << kCountBits) | n;
  // Sequentially consistent with the sleeper's side: either it sees the new ticket or we see it.
  ticket_.store(ticket, std::memory_order_seq_cst);
  for (size_t thread = 1; thread < states_.size() && thread < n; ++thread) {
    std::atomic<uint32_t>& asleep = states_[thread].asleep;
    if (asleep.load(std::memory_order_seq_cst) == 0) continue;
    asleep.store(0, std::memory_order_seq_cst);
    FutexWake(asleep);
  }
  return ticket;
}

void ThreadPool::Run(int n, Job job, void* context) {
  HONE_CHECK(n >= 1 && n <= threads()) << n << " of " << threads() << " threads";
  if (n == 1) {
    job(context, 0);
    return;
  }
  const std::lock_guard<std::mutex> lock(run_mutex_);
  job_ = job;
  context_ = context;
  const uint64_t ticket = Publish(static_cast<uint64_t>(n));
  job(context, 0);
  WaitUntilDone(ticket);
}

bool ThreadPool::IsDone(uint64_t ticket) const {
  const uint64_t n = ticket & kCountMask;
  for (size_t thread = 1; thread < n; ++thread) {
    if (states_[thread].done.load(std::memory_order_seq_cst) != ticket) return false;
  }
  return true;
}

void ThreadPool::WaitUntilDone(uint64_t ticket) {
  for (int patience = kPatience; patience > 0; --patience) {
    if (IsDone(ticket)) return;
    Relax(patience);
  }
  for (;;) {
    caller_sleeps_.store(1, std::memory_order_seq_cst);
    if (IsDone(ticket)) break;
    FutexWait(caller_sleeps_, 1);
  }
  caller_sleeps_.store(0, std::memory_order_relaxed);
}

uint64_t ThreadPool::WaitForTicket(int thread, uint64_t seen, int* patience) {
  for (; *patience > 0; --*patience) {
    const uint64_t ticket = ticket_.load(std::memory_order_acquire);
    if (ticket != seen) return ticket;
    Relax(*patience);
  }
  std::atomic<uint32_t>& asleep = states_[static_cast<size_t>(thread)].asleep;
  for (;;) {
    asleep.store(1, std::memory_order_seq_cst);
    const uint64_t ticket = ticket_.load(std::memory_order_seq_cst);
    if (ticket != seen) {
      asleep.store(0, std::memory_order_relaxed);
      return ticket;
    }
    FutexWait(asleep, 1);
  }
}

void ThreadPool::WorkerMain(int thread, int cpu, std::atomic<int>* started) {
  const DefaultRounding rounding;
  const bool pinned = cpu < 0 || PinThisThread({cpu}).ok();
  // The pool publishes no job before all workers have started, so 0 is what this one has seen.
  started->store(pinned ? 1 : -1);
  started->notify_one();

  uint64_t seen = 0;
  std::atomic<uint64_t>& done = states_[static_cast<size_t>(thread)].done;
  int patience = 0;
  for (;;) {
    seen = WaitForTicket(thread, seen, &patience);
    const uint64_t n = seen & kCountMask;
    if (n == kQuit) return;
    if (static_cast<uint64_t>(thread) >= n) continue;
    job_(context_, thread);
    // Only work renews it: jobs for others do not keep an idle worker spinning.
    patience = kPatience;
    done.store(seen, std::memory_order_seq_cst);
    if (caller_sleeps_.load(std::memory_order_seq_cst) != 0) {
      caller_sleeps_.store(0, std::memory_order_seq_cst);
      FutexWake(caller_sleeps_);
    }
  }
}

}  // namespace hone::runtime
