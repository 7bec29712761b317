#pragma once

#include <string>

namespace hone::measure {

/// This machine as the log knows it. The class is a function of the fingerprint, of version
/// kDeviceClassVersion (docs/formats/log.md): `cpu-1:AuthenticAMD-25-17-l2.1024K-l3.32768K-c2`.
/// Records of one class compete.
struct HostDevice {
  std::string device_class;
  std::string fingerprint;  ///< a line per fact: model name, cpuid, caches, cores
  std::string driver;       ///< kernel and microcode, "Linux 6.1.0, microcode 0x2b"; of no class
};

/// Reads /proc/cpuinfo and the caches below `sysfs_cpu`; what cannot be read counts as 0 or
/// "unknown".
HostDevice DescribeHost(const std::string& cpuinfo = "/proc/cpuinfo",
                        const std::string& sysfs_cpu = "/sys/devices/system/cpu");

}  // namespace hone::measure
