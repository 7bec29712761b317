#pragma once

#include <string>
#include <vector>

#include "base/core/clock.h"

namespace hone::client {

enum class Health { kGood, kWarning, kFault };

/// "ok", "warning", "fault".
std::string_view ToString(Health health);

/// What one check found, and what to do about it.
struct Finding {
  std::string check;
  Health health = Health::kGood;
  std::string found;
  std::string remedy;  ///< empty when all is well
};

/// Where to look; tests give folders of their own.
struct DoctorPaths {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::vector<std::string>
      written_folders;       ///< that Hone writes to; the nearest existing parent counts
  std::string cache_folder;  ///< of built kernels and oracle values; empty: none
  std::string log;           ///< the user's tuning log; empty: none
};

/// Each looks at one thing. A fault keeps Hone from working, a warning makes it slow or its times
/// untrustworthy.
Finding CheckInstructions();
/// Starts hone-builder and hone-runner and has each answer, in its sandbox.
Finding CheckPrograms(const MonotonicClock& clock);
Finding CheckCores();
Finding CheckGovernor(const DoctorPaths& paths);
/// Watches the CPUs for a fifth of a second.
Finding CheckForeignLoad(const DoctorPaths& paths, const MonotonicClock& clock);
Finding CheckMemory(const DoctorPaths& paths);
Finding CheckDisk(const DoctorPaths& paths);
Finding CheckSandbox();
/// Whether results can be kept between programs.
Finding CheckCache(const std::string& folder);
/// Opens the user's log for reading; that there is none is good.
Finding CheckLog(const std::string& path);

/// All of them, in a fixed order.
std::vector<Finding> CheckMachine(const DoctorPaths& paths, const MonotonicClock& clock);

}  // namespace hone::client
