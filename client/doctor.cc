#include "client/doctor.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "fmt/format.h"

#include "base/file.h"
#include "base/status.h"
#include "db/log_file.h"
#include "measure/disk_cache.h"
#include "measure/helper_check.h"

namespace hone::client {
namespace {

constexpr double kMegabyte = 1e6;

using measure::Good;

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

Finding CheckPrograms(const MonotonicClock& clock) {
  const absl::Status status = measure::CheckHelpers({}, {}, clock);
  if (status.ok()) return Good("programs", "hone-builder and hone-runner answer");
  return {"programs", Health::kFault, StatusMessage(status),
          "install Hone as a whole: they belong in ../libexec/hone beside the folder of hone"};
}

Finding CheckMemory(const measure::SystemPaths& paths) {
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
  // A kernel that allows filters reads the null one and says EFAULT. A kernel without filters
  // says EINVAL; a container that refuses them says whatever it likes, mostly EPERM.
  errno = 0;
  const int set = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr);
  const int reason = errno;
  if (set != 0 && reason == EFAULT) return Good("sandbox", "seccomp filters work");
  return {"sandbox", Health::kFault,
          reason == EINVAL
              ? "this kernel has no seccomp filters"
              : fmt::format("seccomp filters are refused here: {}", std::strerror(reason)),
          "candidates run in a sandbox only: use a kernel with CONFIG_SECCOMP_FILTER, or a "
          "container that allows seccomp filters"};
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
  std::vector<Finding> all = measure::CheckDevices(paths.system, clock);
  for (Finding& finding : std::to_array<Finding>(
           {CheckPrograms(clock), CheckMemory(paths.system), CheckDisk(paths), CheckSandbox(),
            CheckCache(paths.cache_folder), CheckLog(paths.log)}))
    all.push_back(std::move(finding));
  return all;
}

}  // namespace hone::client
