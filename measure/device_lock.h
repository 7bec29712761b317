#pragma once

#include <string>

#include "absl/status/statusor.h"

#include "base/core/unique_fd.h"

namespace hone::measure {

/// Keeps a device of this machine to one measuring process at a time: `flock` on a file named after
/// the device, freed however its holder ends. Not thread-safe.
class DeviceLock {
 public:
  /// `folder` is made; the file stays.
  static absl::StatusOr<DeviceLock> Open(const std::string& folder, const std::string& device);

  /// Waits for it.
  void Take();
  void Free();

 private:
  explicit DeviceLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace hone::measure
