#include "tests/farm/unchecked_call.h"

#include <future>

#include "base/credentials.h"
#include "base/file.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "proto/farm_service.h"

namespace hone::farm {

absl::Status CallUnchecked(const std::string& address, const std::string& authority,
                           const std::string& shown, const std::string& method) {
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = ReadFile(authority + "/ca.pem").value();
  if (!shown.empty()) {
    tls.pem_private_key = ReadFile(shown + "/key.pem").value();
    tls.pem_cert_chain = ReadFile(shown + "/cert.pem").value();
  }
  grpc::ChannelArguments arguments;
  arguments.SetSslTargetNameOverride(kServerName);
  grpc::GenericStub stub(grpc::CreateCustomChannel(address, grpc::SslCredentials(tls), arguments));
  grpc::ClientContext context;
  context.set_deadline(gpr_timespec{20, 0, GPR_TIMESPAN});
  proto::SayProtocol(context);
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer reply;
  std::promise<grpc::Status> ended;
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &reply,
                 [&](grpc::Status status) { ended.set_value(std::move(status)); });
  return proto::FromGrpc(ended.get_future().get());
}

}  // namespace hone::farm
