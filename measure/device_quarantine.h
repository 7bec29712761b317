#pragma once

#include <string>

#include "absl/status/status.h"

// A device that stays bad is left alone by everybody on its machine, until somebody has looked at
// it: a file beside its lock (device_lock.h), named after the device, says why.
namespace hone::measure {

/// The file's path.
std::string QuarantinePath(const std::string& folder, const std::string& device);

/// kFailedPrecondition where the device is in quarantine: why, and how to end that.
absl::Status CheckQuarantine(const std::string& folder, const std::string& device);

/// Puts it in, for a reason of one line; one that is in keeps its first reason. Errors of writing.
absl::Status PutInQuarantine(const std::string& folder, const std::string& device,
                             const std::string& why);

}  // namespace hone::measure
