#pragma once

#include <string>
#include <vector>

#include "base/core/status.h"

// Which CPUs this process may use, which of them share a core, and pinning threads to them.
namespace hone {

/// Numbers of the logical CPUs that the calling thread may run on, ascending; never empty.
std::vector<int> AllowedCpus();

/// The first logical CPU among `cpus` of each physical core, ascending. `sysfs_cpu` is the folder
/// with cpuN/topology/thread_siblings_list; a CPU without that file counts as a core of its own.
std::vector<int> OnePerCore(const std::vector<int>& cpus,
                            const std::string& sysfs_cpu = "/sys/devices/system/cpu");

/// Those among `cpus` that belong to performance cores; all where the machine does not tell of two
/// kinds, and where `cpus` are of efficiency cores alone. `sysfs_devices` is the folder with
/// cpu_atom/cpus, which names the latter.
std::vector<int> OnPerformanceCores(const std::vector<int>& cpus,
                                    const std::string& sysfs_devices = "/sys/devices");

/// How many threads are worth starting: the allowed physical performance cores, but no more than
/// the CPU bandwidth that the process's control group grants (rounded up); at least 1.
int UsableCores();

/// CPU bandwidth of the control group in CPUs (1.5 = 150 ms each 100 ms), the least of the group
/// and its parents; 0 if unlimited or unknown. Paths are parameters for tests.
double CgroupCpuLimit(const std::string& proc_self_cgroup = "/proc/self/cgroup",
                      const std::string& cgroup_root = "/sys/fs/cgroup");

/// By number of a CPU the memory node that it belongs to, for those among `cpus`; -1 for others and
/// where nothing says so. Empty where all of `cpus` belong to one node. `sysfs_node` is the folder
/// with nodeN/cpulist.
std::vector<int> NodeOfEachCpu(const std::vector<int>& cpus,
                               const std::string& sysfs_node = "/sys/devices/system/node");

/// Lets the calling thread run on these CPUs only. kInvalidArgument if none of them is allowed.
Status PinThisThread(const std::vector<int>& cpus);

/// "0-3,8" as {0,1,2,3,8}; empty if malformed.
std::vector<int> ParseCpuList(const std::string& text);

}  // namespace hone
