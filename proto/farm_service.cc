#include "proto/farm_service.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "fmt/format.h"

#include "base/status.h"
#include "base/versions.h"
#include "proto/field_check.h"

namespace hone::proto {

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  // The codes are gRPC's by definition.
  return {static_cast<grpc::StatusCode>(status.code()), Cut(StatusMessage(status), kMaxTextBytes)};
}

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

bool IsOfAnotherAuthority(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable &&
         StatusMessage(status).find("certificate verify failed") != std::string::npos;
}

bool IsOfNobody(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable &&
         StatusMessage(status).find("Connection refused") != std::string::npos;
}

std::string WhyNoConnection(const absl::Status& status, Dialled dialled) {
  if (status.code() != absl::StatusCode::kUnavailable) return "";
  const std::string text = StatusMessage(status);
  const auto says = [&](std::string_view words) { return text.find(words) != std::string::npos; };
  if (IsOfAnotherAuthority(status)) {
    return "the server's certificate is not of the authority in ca.pem, or it has expired; see "
           "whether the certificates are of its authority (--tls)";
  }
  // A page or metrics that are asked for the protocol, in the two ways of asking.
  if (says("wrong version number") || says("WRONG_VERSION_NUMBER")) {
    return "what answers there does not speak TLS; see whether it is honed, by the port of its "
           "--listen, and not one of --insecure-loopback";
  }
  if (says("http1.x server")) {
    return "what answers there speaks HTTP alone; see whether it is honed, by the port of its "
           "--listen, not of its page or metrics";
  }
  if (IsOfNobody(status)) {
    return "nothing listens there; see whether honed runs on that machine, and whether this is the "
           "port of its --listen";
  }
  if (says("DNS resolution failed")) {
    return "no machine of that name was found; see whether the address is spelled right";
  }
  // TLS 1.3: the client's part of the handshake is over when its certificate is looked at.
  if (says("failed to connect") && says("Socket closed")) {
    // A server of TLS finds no handshake in plaintext, and has nobody to tell of.
    if (dialled == Dialled::kPlaintext) {
      return "the server ends the connection at once, as one that takes TLS does; leave "
             "--insecure-loopback away and name your credentials (--tls)";
    }
    return "the server ends the connection at once, as it does without a certificate that it "
           "trusts; see whether the certificates are of its authority (--tls), honed's log says "
           "event=caller_refused and why";
  }
  return "";
}

void SayProtocol(grpc::ClientContext& context) {
  context.AddMetadata(kProtocolKey, std::to_string(kProtocolVersion));
  context.AddMetadata(kVersionKey, kProgramVersion);
}

absl::Status CheckProtocol(const grpc::ServerContextBase& context, const std::string& caller) {
  const auto said = [&](const char* key) {
    const auto found = context.client_metadata().find(key);
    if (found == context.client_metadata().end()) return std::string();
    return Cut(std::string(found->second.data(), found->second.size()), kMaxNameBytes);
  };
  const std::string theirs = said(kProtocolKey), ours = std::to_string(kProtocolVersion);
  // A program made from farm.proto alone says nothing: no field of it is ever removed or retyped.
  if (theirs.empty() || theirs == ours) return absl::OkStatus();
  const std::string version = said(kVersionKey);
  const bool older = std::atoll(theirs.c_str()) < kProtocolVersion;
  return absl::FailedPreconditionError(fmt::format(
      "{} (hone {}) speaks protocol {}, honed (hone {}) speaks {}; upgrade {}, or install the same "
      "version of Hone on both",
      caller, version.empty() ? "of an unknown version" : version, theirs, kProgramVersion, ours,
      older ? "the client" : "honed"));
}

}  // namespace hone::proto
