#include "server/work_pool.h"

#include <cerrno>
#include <utility>

#include "base/core/thread_name.h"

namespace hone::server {

WorkPool::WorkPool(const char* name, int threads, size_t most_waiting)
    : most_waiting_(most_waiting) {
  sem_init(&waiting_, /*pshared=*/0, 0);
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, name] {
      NameThisThread(name);
      Loop();
    });
  }
}

WorkPool::~WorkPool() {
  Stop();
  sem_destroy(&waiting_);
}

bool WorkPool::Add(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || queue_.size() >= most_waiting_) return false;
    queue_.push_back(std::move(work));
  }
  sem_post(&waiting_);
  return true;
}

void WorkPool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  for (size_t i = 0; i < threads_.size(); ++i) sem_post(&waiting_);
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkPool::Loop() {
  for (;;) {
    while (sem_wait(&waiting_) != 0 && errno == EINTR) {
    }
    std::function<void()> work;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty()) return;
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    work();
  }
}

}  // namespace hone::server
