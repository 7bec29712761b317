#include "base/core/cpu.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <system_error>

namespace hone {
namespace {

// A mask wide enough for any machine Linux supports (CONFIG_NR_CPUS is at most 8192).
constexpr int kMaxCpus = 8192;

struct CpuMask {
  CpuMask() : set(CPU_ALLOC(kMaxCpus)), bytes(CPU_ALLOC_SIZE(kMaxCpus)) { CPU_ZERO_S(bytes, set); }
  CpuMask(const CpuMask&) = delete;
  CpuMask& operator=(const CpuMask&) = delete;
  ~CpuMask() { CPU_FREE(set); }

  cpu_set_t* set;
  size_t bytes;
};

double NumberIn(const std::string& path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number ? number : 0;
}

// Bandwidth of one group; 0 if unlimited. Version 1 has two files, the quota may be -1.
double GroupLimitV1(const std::string& folder) {
  const double quota = NumberIn(folder + "/cpu.cfs_quota_us");
  const double period = NumberIn(folder + "/cpu.cfs_period_us");
  return quota > 0 && period > 0 ? quota / period : 0;
}

// Version 2 has one file, cpu.max ("QUOTA PERIOD", QUOTA may be "max").
double GroupLimitV2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::strtod(quota.c_str(), nullptr) / period;
}

// The least limit of a group and its parents.
double LeastLimit(const std::string& root, std::string group,
                  double (*limit_of)(const std::string& folder)) {
  double least = 0;
  for (;;) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    const double limit = limit_of(root + group);
    if (limit > 0 && (least == 0 || limit < least)) least = limit;
    if (group.empty()) return least;
    group.erase(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

}  // namespace

std::vector<int> AllowedCpus() {
  CpuMask mask;
  std::vector<int> cpus;
  if (sched_getaffinity(0, mask.bytes, mask.set) == 0) {
    for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), mask.bytes, mask.set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

std::vector<int> OnePerCore(const std::vector<int>& cpus, const std::string& sysfs_cpu) {
  std::vector<int> firsts;
  std::vector<int> taken;
  for (const int cpu : cpus) {
    if (std::find(taken.begin(), taken.end(), cpu) != taken.end()) continue;
    firsts.push_back(cpu);
    std::ifstream file(sysfs_cpu + "/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    std::string line;
    if (!std::getline(file, line)) continue;
    for (const int sibling : ParseCpuList(line)) taken.push_back(sibling);
  }
  return firsts;
}

std::vector<int> OnPerformanceCores(const std::vector<int>& cpus,
                                    const std::string& sysfs_devices) {
  std::ifstream file(sysfs_devices + "/cpu_atom/cpus");
  std::string line;
  if (!std::getline(file, line)) return cpus;
  const std::vector<int> small = ParseCpuList(line);
  std::vector<int> fast;
  for (const int cpu : cpus) {
    if (std::find(small.begin(), small.end(), cpu) == small.end()) fast.push_back(cpu);
  }
  return fast.empty() ? cpus : fast;
}

int UsableCores() {
  const int cores = static_cast<int>(OnePerCore(OnPerformanceCores(AllowedCpus())).size());
  const double limit = CgroupCpuLimit();
  if (limit <= 0) return cores;
  return std::clamp(static_cast<int>(std::ceil(limit)), 1, cores);
}

double CgroupCpuLimit(const std::string& proc_self_cgroup, const std::string& cgroup_root) {
  std::ifstream file(proc_self_cgroup);
  double least = 0;
  for (std::string line; std::getline(file, line);) {
    // "0::/group" of version 2, "4:cpu,cpuacct:/group" of version 1; both may be mounted.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    double limit = 0;
    if (controllers == ",,") limit = LeastLimit(cgroup_root, group, GroupLimitV2);
    if (controllers.find(",cpu,") != std::string::npos) {
      limit = LeastLimit(cgroup_root + "/cpu", group, GroupLimitV1);
    }
    if (limit > 0 && (least == 0 || limit < least)) least = limit;
  }
  return least;
}

std::vector<int> NodeOfEachCpu(const std::vector<int>& cpus, const std::string& sysfs_node) {
  std::ifstream online(sysfs_node + "/online");
  std::string line;
  if (!std::getline(online, line)) return {};
  std::vector<int> node_of;
  int nodes = 0;
  for (const int node : ParseCpuList(line)) {
    std::ifstream list(sysfs_node + "/node" + std::to_string(node) + "/cpulist");
    if (!std::getline(list, line)) continue;
    bool used = false;
    for (const int cpu : ParseCpuList(line)) {
      if (std::find(cpus.begin(), cpus.end(), cpu) == cpus.end()) continue;
      const auto at = static_cast<size_t>(cpu);
      node_of.resize(std::max(node_of.size(), at + 1), -1);
      node_of[at] = node;
      used = true;
    }
    nodes += used ? 1 : 0;
  }
  return nodes > 1 ? node_of : std::vector<int>();
}

Status PinThisThread(const std::vector<int>& cpus) {
  CpuMask mask;
  std::string list;
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < kMaxCpus) CPU_SET_S(static_cast<size_t>(cpu), mask.bytes, mask.set);
    list += (list.empty() ? "" : ",") + std::to_string(cpu);
  }
  if (sched_setaffinity(0, mask.bytes, mask.set) == 0) return {};
  return {StatusCode::kInvalidArgument, "cannot pin this thread to CPUs [" + list +
                                            "]: " + std::generic_category().message(errno)};
}

std::vector<int> ParseCpuList(const std::string& text) {
  std::vector<int> cpus;
  const char* at = text.c_str();
  for (;;) {
    char* end = nullptr;
    const long first = std::strtol(at, &end, 10);
    if (end == at || first < 0 || first >= kMaxCpus) return {};
    long last = first;
    at = end;
    if (*at == '-') {
      last = std::strtol(at + 1, &end, 10);
      if (end == at + 1 || last < first || last >= kMaxCpus) return {};
      at = end;
    }
    for (long cpu = first; cpu <= last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    if (*at == ',') {
      ++at;
    } else if (*at == '\0' || *at == '\n') {
      return cpus;
    } else {
      return {};
    }
  }
}

}  // namespace hone
