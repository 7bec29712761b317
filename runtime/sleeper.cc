#include "runtime/sleeper.h"

#include <cpuid.h>

namespace hone::runtime {
namespace {

/// A guest's system may take a CPU that rests for one that the host has taken away, and then wakes
/// a thread beside the one that wakes it (Linux: vcpu_is_preempted).
bool IsVirtualMachine() {
  static const bool is_virtual = [] {
    constexpr unsigned kFeatures = 1, kHypervisor = 1U << 31;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(kFeatures, &a, &b, &c, &d) != 0 && (c & kHypervisor) != 0;
  }();
  return is_virtual;
}

}  // namespace

bool TakeCpu(int here, int barred, cpu_set_t& allowed) {
  if (here < 0 || here >= CPU_SETSIZE) return false;
  if (barred >= 0) CPU_SET(barred, &allowed);
  if (!CPU_ISSET(here, &allowed) || CPU_COUNT(&allowed) < 2) return false;
  CPU_CLR(here, &allowed);
  return true;
}

void Sleeper::WakeIfAsleep(int slot) {
  if (!IsAsleep()) return;
  Reach(LaneObserver::Point::kBeforeWake, slot);
  uint32_t asleep = kAsleep;
  if (!word_.compare_exchange_strong(asleep, kBeingWoken, std::memory_order_seq_cst)) return;
  Bar();
  word_.store(kAwake, std::memory_order_seq_cst);
  FutexWake(word_);
}

void Sleeper::GetUp() {
  uint32_t word = kAsleep;
  if (word_.compare_exchange_strong(word, kAwake, std::memory_order_seq_cst)) return;
  for (; word == kBeingWoken; word = word_.load(std::memory_order_seq_cst))
    FutexWait(word_, kBeingWoken);
}

void Sleeper::Bar() {
  const int here = ::sched_getcpu();
  const pid_t id = id_.load(std::memory_order_relaxed);
  if (id == 0 || here < 0) return;
  if (cpu_.load(std::memory_order_relaxed) != here && !IsVirtualMachine()) return;
  cpu_set_t allowed;
  if (::sched_getaffinity(id, sizeof(allowed), &allowed) != 0) return;
  // It was woken before, and slept on without work.
  if (!TakeCpu(here, barred_.load(std::memory_order_relaxed), allowed)) return;
  if (::sched_setaffinity(id, sizeof(allowed), &allowed) != 0) return;
  barred_.store(here, std::memory_order_relaxed);
}

void Sleeper::Unbar() {
  const int cpu = barred_.load(std::memory_order_relaxed);
  if (cpu < 0) return;
  barred_.store(-1, std::memory_order_relaxed);
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  CPU_SET(cpu, &allowed);
  ::sched_setaffinity(0, sizeof(allowed), &allowed);
}

}  // namespace hone::runtime
