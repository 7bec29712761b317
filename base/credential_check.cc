#include "base/credential_check.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "fmt/format.h"

#include "base/certificate.h"
#include "base/status.h"

namespace hone {
namespace {

constexpr char kTakeAll[] = "take all three files from one folder that honed issue wrote";

using x509::Certificate;
struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};

/// Why none of these authorities issued the first of `shown`; empty: one did. What it is for and
/// when it is over are other questions.
std::string WhyNotIssued(const std::vector<Certificate>& authorities,
                         const std::vector<Certificate>& shown) {
  const x509::Store store(X509_STORE_new());
  const x509::StoreContext context(X509_STORE_CTX_new());
  const std::unique_ptr<STACK_OF(X509), FreeStack> between(sk_X509_new_null());
  bool ready = store && context && between;
  for (size_t i = 0; ready && i < authorities.size(); ++i) {
    ready = X509_STORE_add_cert(store.get(), authorities[i].get()) == 1;
  }
  for (size_t i = 1; ready && i < shown.size(); ++i) {
    ready = sk_X509_push(between.get(), shown[i].get()) > 0;
  }
  if (!ready ||
      X509_STORE_CTX_init(context.get(), store.get(), shown.front().get(), between.get()) != 1) {
    ERR_clear_error();
    return "out of memory";
  }
  X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(context.get()), X509_V_FLAG_NO_CHECK_TIME);
  const bool issued = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  return issued ? "" : X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
}

/// "submit, publish, admin"
std::string Named(const std::vector<CallerRole>& roles) {
  std::string text;
  for (const CallerRole role : roles) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", RoleName(role));
  }
  return text;
}

/// Whether the holder of a certificate may do this, and still.
absl::Status CheckHolder(const X509* certificate, const std::string& path,
                         const CredentialUse& use) {
  const auto holder = x509::IdentityOf(certificate);
  if (!holder.ok()) {
    return absl::InvalidArgumentError(fmt::format("'{}' names nobody of a farm: {}; {}", path,
                                                  StatusMessage(holder.status()), kTakeAll));
  }
  if (std::ranges::find(use.roles, holder->role) == use.roles.end()) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is of {}, which may not do this; it takes the role {} (honed issue {} NAME)", path,
        holder->Uri(), Named(use.roles), RoleName(use.roles.front())));
  }
  if (use.at_unix_s && holder->expires_unix_s <= *use.at_unix_s) {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' of {} has expired at {}; issue a new one (honed issue {} {})", path, holder->Uri(),
        x509::UtcText(holder->expires_unix_s), RoleName(holder->role), holder->name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCredentials(const Credentials& credentials, const std::string& folder,
                              const CredentialUse& use) {
  const std::string ca_path = folder + "/ca.pem", path = folder + "/cert.pem",
                    key_path = folder + "/key.pem";
  const auto wrong = [](const std::string& what) {
    ERR_clear_error();
    return absl::InvalidArgumentError(fmt::format("{}; {}", what, kTakeAll));
  };
  const auto shown = x509::ParseCertificates(credentials.certificate);
  if (!shown.ok()) return wrong(fmt::format("'{}' is no certificate in PEM", path));
  const auto authorities = x509::ParseCertificates(credentials.ca);
  if (!authorities.ok()) return wrong(fmt::format("'{}' is no certificate in PEM", ca_path));
  const auto key = x509::ParseKey(credentials.key);
  if (!key.ok()) {
    return wrong(fmt::format("'{}' is no private key in PEM without a passphrase", key_path));
  }
  if (X509_check_private_key(shown->front().get(), key->get()) != 1) {
    return wrong(fmt::format("'{}' is not the key of '{}'", key_path, path));
  }
  const std::string why = WhyNotIssued(*authorities, *shown);
  if (!why.empty()) {
    return wrong(fmt::format("'{}' is not of the authority in '{}' ({})", path, ca_path, why));
  }
  return CheckHolder(shown->front().get(), path, use);
}

absl::StatusOr<Credentials> ReadConfiguredCredentials(const std::string& folder,
                                                      const CredentialUse& use) {
  absl::StatusOr<Credentials> read = ReadCredentials(folder);
  absl::Status status = read.status();
  if (status.ok()) status = CheckCredentials(*read, folder, use);
  if (status.ok()) return read;
  return absl::InvalidArgumentError(fmt::format("--tls {}: {}", folder, StatusMessage(status)));
}

absl::StatusOr<int64_t> AuthorityEndOf(const Credentials& credentials) {
  HONE_ASSIGN_OR_RETURN(const std::vector<Certificate> authorities,
                        x509::ParseCertificates(credentials.ca));
  int64_t last = 0;
  for (const Certificate& one : authorities) last = std::max(last, x509::EndOf(one.get()));
  return last;
}

std::string UtcText(int64_t unix_s) { return x509::UtcText(unix_s); }

absl::StatusOr<Identity> HolderOf(const Credentials& credentials) {
  HONE_ASSIGN_OR_RETURN(const Certificate certificate,
                        x509::ParseCertificate(credentials.certificate));
  return x509::IdentityOf(certificate.get());
}

}  // namespace hone
