#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hone {

/// honed's port where an address names none.
inline constexpr int kFarmPort = 7421;

/// An address to dial, with its port: "tuner" becomes "tuner:7421", "::1" becomes "[::1]:7421";
/// "unix:…" stays. kInvalidArgument: no such address, or a port that is not 1 to 65535.
absl::StatusOr<std::string> DialAddress(const std::string& address);
/// The same to listen on: a numeric address or localhost; port 0 is any free one.
absl::StatusOr<std::string> ListenAddress(const std::string& address);

}  // namespace hone
