#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

// Sleeping until a word changes: threads of one process.
namespace hone::runtime {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "the kernel sees the word itself");

/// What such a word says of a thread that sleeps until somebody wakes it.
inline constexpr uint32_t kAwake = 0, kAsleep = 1, kBeingWoken = 2;

/// Sleeps while the word is `expected`. A wrong value, a signal or a spurious return all lead back
/// to the caller's own check.
inline void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected) {
  ::syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected,
            nullptr, nullptr, 0);
}

/// Wakes all that sleep on the word.
inline void FutexWake(const std::atomic<uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<const uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX,
            nullptr, nullptr, 0);
}

}  // namespace hone::runtime
