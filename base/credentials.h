#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace hone {

/// What a program shows and trusts on a farm's connections: PEM texts.
struct Credentials {
  std::string ca, certificate, key;
};

/// The server's certificate is asked for under this name, whatever its address is: the farm's own
/// authority gives it to servers alone.
inline constexpr char kServerName[] = "honed.hone.internal";

/// Reads a private key. kPermissionDenied: others can read it.
absl::StatusOr<std::string> ReadKey(const std::string& path);
/// Reads ca.pem, cert.pem and key.pem of a folder; whether they belong together is not looked at
/// (credential_check.h). kPermissionDenied: others can read the key.
absl::StatusOr<Credentials> ReadCredentials(const std::string& folder);

/// True for "127.0.0.1:7421", "[::1]:7421", "localhost:7421" and "unix:…".
bool IsLoopbackAddress(const std::string& address);

}  // namespace hone
