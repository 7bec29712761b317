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

/// Mutual TLS for honed. Without a certificate of this farm's authority the handshake fails, and
/// `refused` (called from any thread) is told why. A certificate of ours that has expired passes
/// here: its calls are refused with a message, which a handshake cannot carry
/// (CallerOf).
std::shared_ptr<grpc::ServerCredentials> GuardedTls(
    const Credentials& credentials,
    std::function<void(Refusal why, const std::string& text)> refused);

}  // namespace hone::server
