#pragma once

#include <string>

#include "measure/device.h"

namespace hone::measure {

/// The CPUs of this machine as one device. Reads /proc/cpuinfo and the caches below `sysfs_cpu`;
/// what cannot be read counts as 0 or "unknown".
HostDevice DescribeHost(const std::string& cpuinfo = "/proc/cpuinfo",
                        const std::string& sysfs_cpu = "/sys/devices/system/cpu");

/// Every number names the whole host: those that measure as one number take turns.
const KindDevices& CpuDevices();

}  // namespace hone::measure
