#include "measure/kill_switch.h"

#include <csignal>

namespace hone::measure {

void KillSwitch::Pull() {
  const std::lock_guard lock(mutex_);
  pulled_ = true;
  for (const pid_t pid : working_) ::kill(-pid, SIGKILL);
  working_.clear();
}

void KillSwitch::Reset() {
  const std::lock_guard lock(mutex_);
  pulled_ = false;
}

bool KillSwitch::Begin(pid_t pid) {
  const std::lock_guard lock(mutex_);
  if (!pulled_) working_.insert(pid);
  return !pulled_;
}

bool KillSwitch::End(pid_t pid) {
  const std::lock_guard lock(mutex_);
  // One that is not there was killed, though the switch may have been reset since.
  return working_.erase(pid) > 0 && !pulled_;
}

}  // namespace hone::measure
