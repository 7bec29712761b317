#pragma once

#include <string>

#include "absl/status/status.h"

namespace hone::farm {

/// Calls a method ("/hone.v1.Tuning/ListDevices") of a honed with an empty request, as somebody
/// would who does not use our programs: these look at their credentials first. `authority` holds
/// the ca.pem that honed is believed by; `shown`, if not empty, the cert.pem and key.pem.
absl::Status CallUnchecked(const std::string& address, const std::string& authority,
                           const std::string& shown, const std::string& method);

}  // namespace hone::farm
