#pragma once

#include <string>

#include "absl/status/status.h"

#include "base/credentials.h"

namespace hone::server {

/// Asks a running honed, as an admin, to refuse an identity ("spiffe://hone/measure/w1") from now
/// on and to end its streams. Errors: honed's, or kUnavailable.
absl::Status CallRevoke(const std::string& address, const Credentials& admin,
                        const std::string& identity);

}  // namespace hone::server
