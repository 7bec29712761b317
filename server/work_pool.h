#pragma once

#include <semaphore.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hone::server {

/// A few threads for what may wait (commits, reads of the log), so that gRPC's own never do.
/// Thread-safe.
class WorkPool {
 public:
  /// `name`: of its threads. `most_waiting`: more is not taken.
  WorkPool(const char* name, int threads, size_t most_waiting = 4096);
  ~WorkPool();

  /// False: too much is waiting already, or it has stopped; `work` was not taken.
  bool Add(std::function<void()> work);
  /// Does what is waiting, then ends the threads; later work is not taken.
  void Stop();

 private:
  void Loop();

  /// Counts what waits, and one more for each thread once the pool stops. No condition variable:
  /// glibc's lets who signals wait until threads woken before have run, which a busy machine may
  /// put off for milliseconds, and gRPC's threads call Add.
  sem_t waiting_;
  const size_t most_waiting_;
  std::mutex mutex_;
  std::deque<std::function<void()>> queue_;  // guarded by mutex_
  bool stopping_ = false;                    // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace hone::server
