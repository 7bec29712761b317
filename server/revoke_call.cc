#include "server/revoke_call.h"

#include "fmt/format.h"

#include "base/core/random_id.h"
#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "proto/farm_service.h"

namespace hone::server {

absl::Status CallRevoke(const std::string& address, const Credentials& admin,
                        const std::string& identity) {
  constexpr int64_t kDeadlineSeconds = 10;
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = admin.ca;
  tls.pem_private_key = admin.key;
  tls.pem_cert_chain = admin.certificate;
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kServerName);
  const auto stub =
      v1::Tuning::NewStub(grpc::CreateCustomChannel(address, grpc::SslCredentials(tls), arguments));
  grpc::ClientContext context;
  context.set_deadline(gpr_timespec{kDeadlineSeconds, 0, GPR_TIMESPAN});
  proto::SayProtocol(context);
  v1::RevokeRequest request;
  v1::RevokeReply reply;
  request.set_identity(identity);
  request.set_request_id(RandomId().ToHex());
  const absl::Status status = proto::FromGrpc(stub->Revoke(&context, request, &reply));
  const std::string why = proto::WhyNoConnection(status);
  return Annotate(why.empty() ? status : absl::Status(status.code(), why),
                  fmt::format("server '{}'", address));
}

}  // namespace hone::server
