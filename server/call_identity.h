#pragma once

#include <initializer_list>

#include "absl/status/statusor.h"

#include "server/ca.h"

namespace grpc {
class ServerContextBase;
}  // namespace grpc

namespace hone::server {

/// How callers are known.
enum class Transport : uint8_t {
  kMutualTls,
  kPlaintext,  ///< on loopback: the name in the metadata "hone-name", every role
};

/// Who calls. kUnauthenticated: no or an odd certificate, or one that has expired;
/// kPermissionDenied: none of these roles.
absl::StatusOr<Identity> CallerOf(const grpc::ServerContextBase& context, Transport transport,
                                  int64_t now_unix_s, std::initializer_list<CallerRole> roles);

}  // namespace hone::server
