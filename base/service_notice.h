#pragma once

#include <string>

#include "absl/status/status.h"

namespace hone {

/// Tells the service manager `state` ("READY=1", "STOPPING=1": sd_notify(3)) at the socket that
/// $NOTIFY_SOCKET names: a path, or a name that begins with '@'. Does nothing where that is empty:
/// nobody asked. Thread-safe. Errors are the system's, with the socket's name.
absl::Status NotifyService(const std::string& socket, const std::string& state);

}  // namespace hone
