#pragma once

#include <cstdint>
#include <string>

namespace hone::server {

/// What a process uses of its machine, as Prometheus' process_* metrics want it; negative: not
/// known.
struct ProcessUsage {
  double cpu_seconds = -1;  ///< of all threads, in user and system mode
  int64_t resident_bytes = -1, virtual_bytes = -1;
  int64_t open_files = -1, most_files = -1;
};

/// That of this process; `self` stands for /proc/self. Thread-safe.
ProcessUsage ReadProcessUsage(const std::string& self = "/proc/self");

}  // namespace hone::server
