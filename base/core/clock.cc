#include "base/core/clock.h"

#include <cerrno>
#include <ctime>

namespace hone {
namespace {

constexpr int64_t kNsPerSecond = 1'000'000'000;

int64_t ReadClockNs(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return int64_t{now.tv_sec} * kNsPerSecond + now.tv_nsec;
}

}  // namespace

int64_t SystemMonotonicClock::NowNs() const { return ReadClockNs(CLOCK_MONOTONIC); }

void SystemMonotonicClock::SleepNs(int64_t duration_ns) const {
  if (duration_ns <= 0) return;
  const int64_t until_ns = NowNs() + duration_ns;
  const timespec until{.tv_sec = until_ns / kNsPerSecond, .tv_nsec = until_ns % kNsPerSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

int64_t SystemWallClock::UnixNs() const { return ReadClockNs(CLOCK_REALTIME); }

}  // namespace hone
