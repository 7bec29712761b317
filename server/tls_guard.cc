#include "server/tls_guard.h"

#include <utility>

#include "base/status.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "server/ca.h"

namespace hone::server {
namespace {

using grpc::experimental::TlsCustomVerificationCheckRequest;

/// Runs in every handshake, after the peer has proved that it has the key of what it shows.
class Guard final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  Guard(std::string ca, std::function<void(Refusal, const std::string&)> refused)
      : ca_(std::move(ca)), refused_(std::move(refused)) {}

  bool Verify(TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const grpc::string_ref shown = request->peer_cert();
    const std::string certificate(shown.data(), shown.size());
    const absl::Status ours = IssuedBy(ca_, certificate);
    if (!ours.ok()) {
      std::string text = StatusMessage(ours);
      // Nobody tells the address here; this is what an honest stranger can be found by.
      if (const auto claimed = IdentityOf(certificate); claimed.ok()) {
        text += "; it calls itself " + claimed->Uri();
      }
      refused_(certificate.empty() ? Refusal::kNoCertificate : Refusal::kStranger, text);
      *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, StatusMessage(ours));
    }
    return true;
  }
  void Cancel(TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string ca_;
  const std::function<void(Refusal, const std::string&)> refused_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> GuardedTls(
    const Credentials& credentials,
    std::function<void(Refusal why, const std::string& text)> refused) {
  namespace tls = grpc::experimental;
  tls::TlsServerCredentialsOptions options(std::make_shared<tls::StaticDataCertificateProvider>(
      credentials.ca,
      std::vector<tls::IdentityKeyCertPair>{{credentials.key, credentials.certificate}}));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<Guard>(credentials.ca, std::move(refused)));
  return tls::TlsServerCredentials(options);
}

}  // namespace hone::server
