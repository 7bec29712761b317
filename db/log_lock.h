#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "base/core/unique_fd.h"

namespace hone::db {

/// The right to write a log: `flock` on LOG.lock, held until destroyed or the process ends, however
/// it ends. The file says who holds it and is never removed.
class LogLock {
 public:
  /// kUnavailable: held by another (pid and host are in the message); kPermissionDenied,
  /// kNotFound: the lock file cannot be made.
  static absl::StatusOr<LogLock> Take(const std::string& log_path);

 private:
  explicit LogLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace hone::db
