#include "client/doctor.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <sstream>

#include "fmt/format.h"

#include "base/core/cpu.h"
#include "base/file.h"
#include "base/status.h"
#include "db/log_file.h"
#include "ir/target.h"
#include "measure/disk_cache.h"
#include "measure/helper_check.h"

namespace hone::client {
namespace {

constexpr double kMegabyte = 1e6;

Finding Good(std::string check, std::string found) {
  return {std::move(check), Health::kGood, std::move(found), ""};
}

/// Jiffies of /proc/stat's first line: all, and those of work.
struct CpuTimes {
  int64_t total = 0;
  int64_t busy = 0;
};

bool ReadCpuTimes(const std::string& path, CpuTimes* times) {
  const auto text = ReadFile(path);
  if (!text.ok() || !text->starts_with("cpu ")) return false;
  std::istringstream fields(text->substr(4, text->find('\n') - 4));
  // user nice system idle iowait irq softirq steal
  int64_t field = 0;
  for (int i = 0; i < 8 && fields >> field; ++i) {
    times->total += field;
    if (i != 3 && i != 4) times->busy += field;
  }
  return times->total > 0;
}

/// Kilobytes of one line of /proc/meminfo, or -1.
int64_t MemoryLine(const std::string& text, const std::string& name) {
  const size_t at = text.find(name + ":");
  if (at == std::string::npos) return -1;
  std::istringstream rest(text.substr(at + name.size() + 1));
  int64_t kilobytes = -1;
  rest >> kilobytes;
  return kilobytes;
}

std::string FirstExisting(std::filesystem::path path) {
  std::error_code ignored;
  while (!std::filesystem::exists(path, ignored) && path.has_relative_path())
    path = path.parent_path();
  return path.string();
}

}  // namespace

std::string_view ToString(Health health) {
  switch (health) {
    case Health::kGood: return "ok";
    case Health::kWarning: return "warning";
    case Health::kFault: return "fault";
  }
  HONE_UNREACHABLE();
}

Finding CheckInstructions() {
  const std::string native = ir::ResolveNative("cpu:native", 1);
  ir::Target target;
  std::string why;
  if (ir::ParseTarget(native, &target, &why) && ir::HostCanRun(target, &why)) {
    return Good("instructions", native.substr(0, native.find(',')));
  }
  return {
      "instructions", Health::kFault, why,
      "Hone's code needs AVX2 and FMA; use a CPU of 2013 or later, or let the virtual machine pass "
      "its CPU's features through"};
}

Finding CheckPrograms(const MonotonicClock& clock) {
  const absl::Status status = measure::CheckHelpers({}, {}, clock);
  if (status.ok()) return Good("programs", "hone-builder and hone-runner answer");
  return {"programs", Health::kFault, StatusMessage(status),
          "install Hone as a whole: they belong in ../libexec/hone beside the folder of hone"};
}

Finding CheckCores() {
  const size_t allowed = AllowedCpus().size();
  const double limit = CgroupCpuLimit();
  const std::string found = fmt::format("{} CPUs allowed, {} cores usable", allowed, UsableCores());
  if (limit == 0 || limit >= static_cast<double>(OnePerCore(AllowedCpus()).size())) {
    return Good("cores", found);
  }
  return {"cores", Health::kWarning,
          fmt::format("{}; the control group grants {:.2f} CPUs", found, limit),
          "times vary when the limit is hit: raise it, or use --threads with a smaller number"};
}

Finding CheckGovernor(const DoctorPaths& paths) {
  std::map<std::string, int> governors;
  std::error_code error;
  for (const auto& cpu :
       std::filesystem::directory_iterator(paths.sys + "/devices/system/cpu", error)) {
    const auto text = ReadFile((cpu.path() / "cpufreq" / "scaling_governor").string());
    if (text.ok()) ++governors[text->substr(0, text->find('\n'))];
  }
  if (governors.empty())
    return Good("governor", "the system tells none (a virtual machine, or fixed)");
  std::string found;
  for (const auto& [name, count] : governors) {
    found += fmt::format("{}{} on {} CPUs", found.empty() ? "" : ", ", name, count);
  }
  if (governors.size() == 1 && governors.begin()->first == "performance")
    return Good("governor", found);
  return {
      "governor", Health::kWarning, found,
      "clock frequencies may change while Hone measures: cpupower frequency-set -g performance"};
}

Finding CheckForeignLoad(const DoctorPaths& paths, const MonotonicClock& clock) {
  CpuTimes before, after;
  const std::string path = paths.proc + "/stat";
  bool known = ReadCpuTimes(path, &before);
  clock.SleepNs(200'000'000);
  known = ReadCpuTimes(path, &after) && known;
  if (!known || after.total <= before.total) {
    return {"foreign load", Health::kWarning, fmt::format("'{}' cannot be read", path),
            "mount /proc; without it Hone cannot tell whether others disturb its measurements"};
  }
  const double share = static_cast<double>(after.busy - before.busy) /
                       static_cast<double>(after.total - before.total);
  const std::string found = fmt::format("{:.0f} % of all CPUs busy", 100 * share);
  if (share <= 0.1) return Good("foreign load", found);
  return {"foreign load", Health::kWarning, found,
          "other programs disturb measurements: stop them while tuning (top shows them)"};
}

Finding CheckMemory(const DoctorPaths& paths) {
  constexpr double kNeededMb = 2000;
  const auto text = ReadFile(paths.proc + "/meminfo");
  const int64_t available = text.ok() ? MemoryLine(*text, "MemAvailable") : -1;
  if (available < 0) {
    return {"memory", Health::kWarning, "the amount of free memory cannot be read", "mount /proc"};
  }
  const double megabytes = static_cast<double>(available) * 1024 / kMegabyte;
  const std::string found = fmt::format("{:.0f} MB available", megabytes);
  if (megabytes >= kNeededMb) return Good("memory", found);
  return {"memory", Health::kWarning, found,
          fmt::format("compiling needs up to {:.0f} MB: close other programs", kNeededMb)};
}

Finding CheckDisk(const DoctorPaths& paths) {
  constexpr double kNeededMb = 500;
  std::string found;
  for (const std::string& folder : paths.written_folders) {
    if (folder.empty()) {
      return {"disk", Health::kWarning, "no home folder",
              "set HOME, or XDG_DATA_HOME and XDG_CACHE_HOME"};
    }
    const std::string existing = FirstExisting(folder);
    std::error_code error;
    const auto space = std::filesystem::space(existing, error);
    if (error) {
      return {"disk", Health::kFault, fmt::format("'{}': {}", existing, error.message()),
              "make the folder accessible"};
    }
    const double megabytes = static_cast<double>(space.available) / kMegabyte;
    found += fmt::format("{}{:.0f} MB free for {}", found.empty() ? "" : ", ", megabytes, folder);
    if (megabytes < kNeededMb) {
      return {
          "disk", Health::kFault, found,
          fmt::format("logs and caches need {:.0f} MB there: make room, or set XDG_DATA_HOME and "
                      "XDG_CACHE_HOME to another disk",
                      kNeededMb)};
    }
    if (::access(existing.c_str(), W_OK) != 0) {
      return {"disk", Health::kWarning,
              fmt::format("'{}' cannot be written: {}", existing, std::strerror(errno)),
              "set XDG_DATA_HOME and XDG_CACHE_HOME to folders of yours, or name a log with --db"};
    }
  }
  return Good("disk", found);
}

Finding CheckSandbox() {
  // Who lets filters be set looks at the null one, and finds no memory there. A kernel without them
  // says EINVAL; a container that refuses them whatever it likes, EPERM mostly.
  errno = 0;
  const int set = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr);
  const int reason = errno;
  if (set != 0 && reason == EFAULT) return Good("sandbox", "seccomp filters work");
  return {
      "sandbox", Health::kFault,
      reason == EINVAL ? "this kernel has no seccomp filters"
                       : fmt::format("seccomp filters are refused here: {}", std::strerror(reason)),
      "candidates run sandboxed only: use a kernel with CONFIG_SECCOMP_FILTER, or a container that "
      "does not forbid it"};
}

Finding CheckCache(const std::string& folder) {
  if (folder.empty()) {
    return {"cache", Health::kWarning, "no home folder", "set HOME, or XDG_CACHE_HOME"};
  }
  const measure::DiskCache cache({.folder = folder, .make_folder = false});
  if (!cache.why_unused().empty()) {
    return {"cache", Health::kWarning, "nothing is kept between programs: " + cache.why_unused(),
            "make that folder yours alone (chown, chmod 700), or set XDG_CACHE_HOME to another"};
  }
  const measure::CacheUsage usage = cache.Usage();
  return Good("cache", fmt::format("{}: {} files, {:.1f} MB", folder, usage.TotalFiles(),
                                   static_cast<double>(usage.TotalBytes()) * 1e-6));
}

Finding CheckLog(const std::string& path) {
  std::error_code ignored;
  if (path.empty()) return Good("log", "no home folder: name one with --db");
  if (!std::filesystem::exists(path, ignored)) {
    return Good("log", fmt::format("{}: none yet", path));
  }
  const auto log = db::OpenLog(path, {});
  const auto stats = log.ok() ? (*log)->Stats() : log.status();
  if (!stats.ok()) {
    return {"log", Health::kFault, StatusMessage(stats.status()),
            fmt::format("`hone db verify {0}` looks at every fact; move the file away to begin a "
                        "new log",
                        path)};
  }
  return Good("log", fmt::format("{}: {} records of {} kernels, {:.1f} MB", path, stats->records,
                                 stats->workloads, static_cast<double>(stats->file_bytes) * 1e-6));
}

std::vector<Finding> CheckMachine(const DoctorPaths& paths, const MonotonicClock& clock) {
  return {CheckInstructions(),
          CheckPrograms(clock),
          CheckCores(),
          CheckGovernor(paths),
          CheckForeignLoad(paths, clock),
          CheckMemory(paths),
          CheckDisk(paths),
          CheckSandbox(),
          CheckCache(paths.cache_folder),
          CheckLog(paths.log)};
}

}  // namespace hone::client
