#pragma once

#include <string>

#include "absl/status/status.h"

namespace hone::client {

/// Whether a file can be written at `path`, as far as that can be told without trying: asked before
/// work that would be lost. kNotFound: there is no such folder; kPermissionDenied: nothing may be
/// made in it; kInvalidArgument: `path` is a folder. What stands there and is no regular file (a
/// pipe, a device) is not looked at.
absl::Status CheckOutput(const std::string& path);

}  // namespace hone::client
