#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

// The only place (with clock.h) where a thread waits for time to pass. It is real time, whatever
// clock the caller was given: this says only how long a thread rests before it looks again, and
// what it then does follows from its clock.
namespace hone {

/// Waits until `ready()` holds or `duration_ns` have passed (at once if that is not positive); what
/// `ready()` says then. `lock` is held before and after, and while `ready` runs. As thread-safe as
/// the condition variable.
template <typename Ready>
bool WaitFor(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
             int64_t duration_ns, Ready ready) {
  return changed.wait_for(lock, std::chrono::nanoseconds(duration_ns), std::move(ready));
}

/// The same without a condition: until somebody notifies, or for no reason at all.
inline void WaitFor(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                    int64_t duration_ns) {
  changed.wait_for(lock, std::chrono::nanoseconds(duration_ns));
}

}  // namespace hone
