#include "measure/process_load.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

namespace hone::measure {
namespace {

double TicksPerSecond() { return static_cast<double>(::sysconf(_SC_CLK_TCK)); }

/// Fields of /proc/PID/stat that matter here, see proc(5).
struct ProcessStat {
  pid_t parent = 0;
  double own_seconds = 0;       ///< user and system
  double children_seconds = 0;  ///< of children that were waited for
};

std::optional<ProcessStat> ReadProcessStat(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // The name in parentheses may hold anything, parentheses too.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  ProcessStat stat;
  char state = 0;
  long long skipped = 0, user = 0, system = 0, children_user = 0, children_system = 0;
  fields >> state >> stat.parent;
  for (int i = 0; i < 9; ++i) fields >> skipped;  // pgrp to cmajflt
  if (!(fields >> user >> system >> children_user >> children_system)) return std::nullopt;
  stat.own_seconds = static_cast<double>(user + system) / TicksPerSecond();
  stat.children_seconds = static_cast<double>(children_user + children_system) / TicksPerSecond();
  return stat;
}

}  // namespace

std::optional<double> CpuSecondsOf(pid_t pid, const std::string& proc) {
  const auto stat = ReadProcessStat(proc + "/" + std::to_string(pid) + "/stat");
  if (!stat) return std::nullopt;
  return stat->own_seconds;
}

void LimitCpuTime(pid_t pid, double seconds) {
  const std::optional<double> used = CpuSecondsOf(pid);
  if (!used) return;
  // Whole seconds; one more for the rounding of what was used.
  const auto soft = static_cast<rlim_t>(std::ceil(*used + seconds)) + 1;
  const rlimit limit{soft, RLIM_INFINITY};
  // Refused where the limits of this process forbid it: the wall clock still ends the job.
  static_cast<void>(::prlimit(pid, RLIMIT_CPU, &limit, nullptr));
}

void LimitFiles(pid_t pid, int files, int64_t bytes) {
  for (const auto& [resource, value] : {std::pair(RLIMIT_NOFILE, static_cast<rlim_t>(files)),
                                        std::pair(RLIMIT_FSIZE, static_cast<rlim_t>(bytes))}) {
    rlimit limit{};
    // Fails for a process that has ended: then there is nothing to limit.
    if (::prlimit(pid, resource, nullptr, &limit) != 0) return;
    limit.rlim_cur = std::min(value, limit.rlim_max);
    static_cast<void>(::prlimit(pid, resource, &limit, nullptr));
  }
}

CpuShare::CpuShare(pid_t pid, std::string proc)
    : threads_(proc + "/" + std::to_string(pid) + "/task"),
      asker_(std::move(proc) + "/thread-self/schedstat"),
      begun_(Read()) {}

std::optional<CpuShare::Times> CpuShare::Read() const {
  Times times;
  int64_t ran_ns = 0, queued_ns = 0;
  if (!(std::ifstream(asker_) >> ran_ns >> queued_ns)) return std::nullopt;
  times.queued_ns = queued_ns;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(threads_.c_str()),
                                                   [](DIR* d) { return ::closedir(d); });
  if (folder == nullptr) return std::nullopt;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    std::ifstream file(threads_ + "/" + entry->d_name + "/schedstat");
    if (!(file >> ran_ns >> queued_ns)) return std::nullopt;
    times.ran_ns[entry->d_name] = ran_ns;
    times.queued_ns += queued_ns;
  }
  return times;
}

std::optional<CpuShare::Used> CpuShare::SinceBegun() const {
  const std::optional<Times> now = Read();
  if (!begun_ || !now) return std::nullopt;
  Used used{.queued_ns = now->queued_ns - begun_->queued_ns};
  for (const auto& [thread, ran_ns] : now->ran_ns) {
    const auto before = begun_->ran_ns.find(thread);
    used.ran_ns =
        std::max(used.ran_ns, ran_ns - (before == begun_->ran_ns.end() ? 0 : before->second));
  }
  return used;
}

ForeignLoad::ForeignLoad(const MonotonicClock& clock, std::string proc)
    : clock_(clock), proc_(std::move(proc)), last_(Read()) {}

std::optional<ForeignLoad::Times> ForeignLoad::Read() const {
  Times times;
  times.at_ns = clock_.NowNs();
  std::ifstream file(proc_ + "/stat");
  std::string word;
  if (!(file >> word) || word != "cpu") return std::nullopt;
  // user nice system idle iowait irq softirq steal
  double ticks = 0;
  for (int i = 0; i < 8 && file >> ticks; ++i) {
    if (i != 3 && i != 4) times.busy += ticks / TicksPerSecond();
  }
  const pid_t self = ::getpid();
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(proc_.c_str()),
                                                   [](DIR* d) { return ::closedir(d); });
  if (folder == nullptr) return std::nullopt;
  while (const dirent* entry = ::readdir(folder.get())) {
    const auto pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    const auto stat = ReadProcessStat(proc_ + "/" + entry->d_name + "/stat");
    if (!stat) continue;
    if (pid == self) times.ours += stat->own_seconds + stat->children_seconds;
    if (stat->parent == self) times.ours += stat->own_seconds;
  }
  return times;
}

std::optional<double> ForeignLoad::SinceLast() {
  if (last_ && clock_.NowNs() - last_->at_ns < kLeastNs) return std::nullopt;
  const std::optional<Times> before = last_;
  last_ = Read();
  if (!before || !last_) return std::nullopt;
  const double seconds = static_cast<double>(last_->at_ns - before->at_ns) * 1e-9;
  const double foreign = (last_->busy - before->busy) - (last_->ours - before->ours);
  return std::max(0.0, foreign) / std::max(seconds, 1e-9);
}

}  // namespace hone::measure
