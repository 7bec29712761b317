#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

#include "base/core/clock.h"

namespace hone::runtime::testing {

/// Whether a thread of this process sleeps just now, as the system says.
inline bool IsAsleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat.compare(name_end + 2, 1, "S") == 0;
}

/// Waits until it does, two seconds at most.
inline bool AwaitSleep(pid_t thread) {
  const SystemMonotonicClock clock;
  for (int turn = 0; turn < 2000; ++turn) {
    if (IsAsleep(thread)) return true;
    clock.SleepNs(1'000'000);
  }
  return false;
}

}  // namespace hone::runtime::testing
