#pragma once

#include <initializer_list>

#include "absl/status/statusor.h"

#include "server/known_certificates.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace hone::server {

/// How callers are known.
enum class Transport : uint8_t {
  kMutualTls,
  kPlaintext,  ///< on loopback: the name in the metadata "hone-name", every role
};

/// Why a caller is refused; metrics count each (their label `why`).
enum class Refusal : uint8_t {
  kNoCertificate,
  kStranger,  ///< a certificate of another authority
  kIdentity,  ///< of ours, but it names nobody of a farm
  kExpired,
  kRevoked,
  kRole,
  kProtocol,  ///< a client of another version
};
inline constexpr int kNumRefusals = 7;
/// "no_certificate", "stranger", "identity", "expired", "revoked", "role", "protocol".
std::string_view NameOf(Refusal refusal);

/// Who calls. kUnauthenticated: no or an odd certificate, or one that has expired;
/// kPermissionDenied: none of these roles; `why` says which.
absl::StatusOr<Identity> CallerOf(const grpc::ServerContextBase& context, Transport transport,
                                  KnownCertificates& certificates, int64_t now_unix_s,
                                  std::initializer_list<CallerRole> roles, Refusal* why);

}  // namespace hone::server
