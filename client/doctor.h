#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "measure/finding.h"
#include "measure/kind_checks.h"

namespace hone::client {

using measure::Finding;
using measure::Health;

/// "ok", "warning", "fault".
std::string_view ToString(Health health);

/// Where to look; tests give folders of their own.
struct DoctorPaths {
  measure::SystemPaths system;
  std::vector<std::string>
      written_folders;       ///< that Hone writes to; the nearest existing parent counts
  std::string cache_folder;  ///< of built kernels and oracle values; empty: none
  std::string log;           ///< the user's tuning log; empty: none
};

/// Each looks at one thing that has no kind of device of its own.
/// Starts hone-builder and hone-runner and has each answer, in its sandbox.
Finding CheckPrograms(const MonotonicClock& clock);
Finding CheckMemory(const measure::SystemPaths& paths);
Finding CheckDisk(const DoctorPaths& paths);
Finding CheckSandbox();
/// Whether results can be kept between programs.
Finding CheckCache(const std::string& folder);
/// Opens the user's log for reading; that there is none is good.
Finding CheckLog(const std::string& path);

/// What the kinds of device ask for (measure/kind_checks.h), then these; in a fixed order.
std::vector<Finding> CheckMachine(const DoctorPaths& paths, const MonotonicClock& clock);

}  // namespace hone::client
