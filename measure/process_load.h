#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/core/clock.h"
#include "measure/others_watch.h"

// Who keeps the CPUs busy, from /proc. No class is thread-safe.
namespace hone::measure {

/// CPU time of a process so far, seconds; nullopt when it is gone or /proc does not tell.
std::optional<double> CpuSecondsOf(pid_t pid, const std::string& proc = "/proc");

/// The process's CPU time may grow by `seconds` from now on, then the kernel ends it with SIGXCPU:
/// a job that runs hot ends even while nobody watches the wall clock. Only as good as /proc; where
/// that is missing nothing is limited.
void LimitCpuTime(pid_t pid, double seconds);

/// Whatever it may use of files from now on, memory files too: so many open ones, numbers from 0
/// on, of at most so many bytes each. Not above the limits that it was started with.
void LimitFiles(pid_t pid, int files, int64_t bytes);

/// How a process's threads got CPUs from now on, by the scheduler's own counters in nanoseconds.
/// For the thread that asks the process for something and waits for its answer.
class CpuShare {
 public:
  explicit CpuShare(pid_t pid, std::string proc = "/proc");

  struct Used {
    int64_t ran_ns = 0;  ///< the thread that ran for longest
    int64_t queued_ns =
        0;  ///< all of them, and the thread that asks: ready, and others had the CPU
  };
  /// Since the constructor; nullopt where the kernel does not tell.
  std::optional<Used> SinceBegun() const;

 private:
  struct Times {
    std::map<std::string, int64_t> ran_ns;  ///< by thread
    int64_t queued_ns = 0;
  };
  std::optional<Times> Read() const;

  const std::string threads_, asker_;
  const std::optional<Times> begun_;
};

/// How many CPUs other programs kept busy: everything that /proc/stat counts as work (time stolen
/// by other virtual machines too) less this process, its ended and its running children.
class ForeignLoad final : public OthersWatch {
 public:
  /// `clock` must outlive it. `proc`: where /proc is mounted, tests give a folder.
  explicit ForeignLoad(const MonotonicClock& clock, std::string proc = "/proc");

  /// The kernel counts in ticks of 10 ms, /proc may not tell.
  std::optional<double> SinceLast() override;

 private:
  struct Times {
    int64_t at_ns = 0;
    double busy = 0;  ///< seconds, of all CPUs
    double ours = 0;
  };
  std::optional<Times> Read() const;

  const MonotonicClock& clock_;
  const std::string proc_;
  std::optional<Times> last_;
};

}  // namespace hone::measure
