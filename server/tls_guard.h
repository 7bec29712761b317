#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/credentials.h"
#include "server/call_identity.h"

namespace grpc {
class ServerCredentials;
}  // namespace grpc

namespace hone::server {

/// Mutual TLS for honed. Who shows no certificate, or one that this farm's authority did not issue,
/// gets no further than the handshake, and `refused` (from any thread) is told why. A certificate
/// of ours that has expired passes here: what is called with it is refused in words, which a
/// handshake has none of (CallerOf).
std::shared_ptr<grpc::ServerCredentials> GuardedTls(
    const Credentials& credentials,
    std::function<void(Refusal why, const std::string& text)> refused);

}  // namespace hone::server
