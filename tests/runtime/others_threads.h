#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

// Threads that are not Hone's.
namespace hone::runtime::testing {

/// They do nothing but keep CPUs busy.
class BusyThreads {
 public:
  explicit BusyThreads(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        while (!over_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~BusyThreads() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> over_{false};
  std::vector<std::thread> threads_;
};

/// An executor's parallel_for: each call on a thread of its own.
inline void CallOnThreads(void*, int32_t n, void (*body)(void*, int32_t), void* context) {
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < n; ++i) threads.emplace_back(body, context, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace hone::runtime::testing
