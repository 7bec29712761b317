#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "base/core/clock.h"
#include "base/subprocess.h"

namespace hone::bench {

/// A honed of this build as a process of its own, which is killed and started again. Not
/// thread-safe.
class HonedProcess {
 public:
  struct Options {
    std::string folder;   ///< with ca/, honed/ (credentials) and tune.db, made where there is none
    std::string program;  ///< empty: that of the same build tree
  };
  HonedProcess(Options options, const MonotonicClock& clock);

  /// Makes an authority and honed's own credentials.
  absl::Status Issue(const std::string& role, const std::string& name) const;
  /// Starts it and waits until it listens, on the port of the first start. kUnavailable: it ended,
  /// or took longer than a minute.
  absl::Status Start();
  void Kill();
  /// SIGTERM; an error unless it ends well.
  absl::Status Terminate();

  std::string Address() const;
  std::string LogPath() const { return options_.folder + "/tune.db"; }
  pid_t pid() const { return child_ ? child_->pid() : -1; }

 private:
  const Options options_;
  const MonotonicClock& clock_;
  int port_ = 0;
  int starts_ = 0;
  std::optional<Subprocess> child_;
};

/// CPU time of a process by the names of its threads, from /proc. Threads that ended keep what they
/// had used when last looked at; the rest of what ended threads used is in "ended".
class ProcessMeter {
 public:
  explicit ProcessMeter(pid_t pid) : pid_(pid) {}

  void Look();
  /// Seconds by name as of the last look.
  std::map<std::string, double> Seconds() const;
  double TotalSeconds() const { return total_s_; }
  double RssMib() const { return rss_mib_; }

 private:
  struct Thread {
    std::string name;
    double seconds = 0;
  };

  const pid_t pid_;
  std::map<std::string, Thread> threads_;  ///< by number; those that ended too
  double total_s_ = 0, rss_mib_ = 0;
};

}  // namespace hone::bench
