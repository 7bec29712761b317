#pragma once

#include <sys/types.h>

#include <mutex>
#include <set>

namespace hone::measure {

/// Ends jobs that nobody waits for any more with the children that work on them. Thread-safe.
class KillSwitch {
 public:
  /// Kills the process groups that work on its jobs; jobs that begin later are refused until Reset.
  void Pull();
  void Reset();

  /// A child, which leads a process group, begins a job. False: pulled, and it is not to begin.
  bool Begin(pid_t pid);
  /// The job is over; said before the child is reaped, whose number may then be another's. False:
  /// it was pulled meanwhile, and the child is no more.
  bool End(pid_t pid);

 private:
  std::mutex mutex_;
  std::set<pid_t> working_;  // guarded by mutex_
  bool pulled_ = false;      // guarded by mutex_
};

}  // namespace hone::measure
