#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

#include "hone/v1/farm.grpc.pb.h"
#include "proto/convert.h"

// The generated services for the few files that serve or call them, and the one crossing between
// gRPC's status and ours.
namespace hone::proto {

grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

/// How a connection was tried: by credentials or, on loopback, without.
enum class Dialled : uint8_t { kTls, kPlaintext };
/// Why there is no connection, and what to do, where gRPC's words for it are known: "the server's
/// certificate is not of the authority …". Empty: no error of this kind.
std::string WhyNoConnection(const absl::Status& status, Dialled dialled = Dialled::kTls);
/// Asking again changes nothing: the server there is not of the authority that is trusted here.
bool IsOfAnotherAuthority(const absl::Status& status);

/// Nothing listens there.
bool IsOfNobody(const absl::Status& status);

/// Metadata of every call of the service Tuning: kProtocolVersion, and (for people) the program's.
inline constexpr char kProtocolKey[] = "hone-protocol";
inline constexpr char kVersionKey[] = "hone-version";
/// Metadata of Snapshot: "1" of a copy that is read once and not kept. The audit tells them apart.
inline constexpr char kPassingKey[] = "hone-passing";
/// Says what this program speaks; before each call.
void SayProtocol(grpc::ClientContext& context);
/// kFailedPrecondition names both sides and which to upgrade. `caller`: who asks.
absl::Status CheckProtocol(const grpc::ServerContextBase& context, const std::string& caller);

}  // namespace hone::proto
