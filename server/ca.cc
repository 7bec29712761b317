#include "server/ca.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <utility>

#include "fmt/format.h"

#include "base/certificate.h"
#include "base/core/unique_fd.h"
#include "base/credentials.h"
#include "base/file.h"
#include "base/status.h"
#include "server/issue_journal.h"

namespace hone::server {
namespace {

using x509::Bio;
using x509::Certificate;
using x509::EndOf;
using x509::Key;
using x509::ParseCertificate;
using x509::Store;
using x509::StoreContext;
using x509::UtcText;

constexpr int64_t kCaSeconds = int64_t{3650} * 86400;
// Certificates begin a little earlier than now: clocks of machines differ.
constexpr int64_t kBackdatedSeconds = 3600;

absl::Status OpensslError(std::string_view doing) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  return absl::InternalError(fmt::format("cannot {}: {}", doing, text.data()));
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

absl::StatusOr<Key> NewKey() {
  Key key(EVP_EC_gen("P-256"));
  if (!key) return OpensslError("make a key");
  return key;
}

absl::StatusOr<std::string> KeyPem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return OpensslError("write a key");
  }
  return TextOf(bio.get());
}

absl::StatusOr<std::string> CertificatePem(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) return OpensslError("write a certificate");
  return TextOf(bio.get());
}

absl::Status AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  const bool added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added ? absl::OkStatus() : OpensslError("extend a certificate");
}

struct CertificateText {
  std::string common_name;
  int64_t begin_unix_s = 0, end_unix_s = 0;
};

absl::StatusOr<Certificate> NewCertificate(const CertificateText& text, EVP_PKEY* key) {
  Certificate certificate(X509_new());
  std::array<unsigned char, 16> serial{};
  if (!certificate || RAND_bytes(serial.data(), serial.size()) != 1) {
    return OpensslError("make a certificate");
  }
  serial[0] &= 0x7f;
  BIGNUM* number = BN_bin2bn(serial.data(), serial.size(), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get()));
  BN_free(number);
  X509_set_version(certificate.get(), 2);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), text.begin_unix_s);
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), text.end_unix_s);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(text.common_name.c_str()), -1,
                             -1, 0);
  return certificate;
}

std::string SerialOf(const X509* certificate) {
  BIGNUM* const number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr);
  char* const text = BN_bn2hex(number);
  std::string serial = text == nullptr ? "" : text;
  OPENSSL_free(text);
  BN_free(number);
  return serial;
}

/// Nobody believes a certificate when its authority is over, whatever it says itself.
absl::Status CheckEnd(const IssueOptions& options, const X509* ca) {
  constexpr int64_t kDay = 86400;
  const int64_t left_s = EndOf(ca) - options.now_unix_s;
  if (options.seconds <= left_s) return absl::OkStatus();
  const std::string end = UtcText(EndOf(ca));
  if (left_s < kDay) {
    return absl::InvalidArgumentError(fmt::format(
        "the authority in '{}' ends at {}: begin a new one (honed init-ca --ca FOLDER) and issue "
        "everybody's credentials from it",
        options.ca_folder, end));
  }
  return absl::InvalidArgumentError(
      fmt::format("a certificate of {} days would outlive its authority, which ends at {}; at most "
                  "--days {}",
                  options.seconds / kDay, end, left_s / kDay));
}

/// A folder keeps the credentials of one owner: a key that is written over is gone.
absl::Status CheckOutFolder(const std::string& folder, const Identity& identity) {
  std::error_code ignored;
  if (std::filesystem::exists(folder + "/ca.key", ignored)) {
    return absl::AlreadyExistsError(
        fmt::format("'{}' is the folder of an authority, which is no place for credentials that "
                    "are given away; name another one (--out)",
                    folder));
  }
  const std::string path = folder + "/cert.pem";
  if (!std::filesystem::exists(path, ignored)) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const std::string pem, ReadFile(path));
  const absl::StatusOr<Identity> there = IdentityOf(pem);
  if (there.ok() && there->Uri() == identity.Uri()) return absl::OkStatus();
  return absl::AlreadyExistsError(fmt::format(
      "'{}' is {}; the credentials of {} would replace it and its key; name another folder (--out)",
      path, there.ok() ? "of " + there->Uri() : "no certificate of a farm", identity.Uri()));
}

absl::Status WriteKey(const std::string& path, const std::string& pem) {
  const std::string temporary = path + ".tmp";
  ::unlink(temporary.c_str());
  const UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return ErrnoStatus(errno, fmt::format("write '{}'", temporary));
  if (::write(fd.get(), pem.data(), pem.size()) != static_cast<ssize_t>(pem.size()) ||
      ::fsync(fd.get()) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoStatus(errno, fmt::format("write '{}'", path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MayRevoke(const Identity& identity) {
  if (identity.role != CallerRole::kServer) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{} is honed itself, and no caller: revoking it would stop nobody from posing as "
                  "honed; issue "
                  "a new one, and if its key was stolen begin a new authority (honed init-ca)",
                  identity.Uri()));
}

absl::StatusOr<Identity> IdentityOf(const std::string& pem) {
  const auto certificate = ParseCertificate(pem);
  if (!certificate.ok()) return absl::UnauthenticatedError("no client certificate was shown");
  auto identity = x509::IdentityOf(certificate->get());
  if (!identity.ok()) return absl::UnauthenticatedError(StatusMessage(identity.status()));
  return identity;
}

absl::Status IssuedBy(const std::string& ca_pem, const std::string& certificate_pem) {
  const auto certificate = ParseCertificate(certificate_pem);
  if (!certificate.ok()) return absl::UnauthenticatedError("no client certificate was shown");
  HONE_ASSIGN_OR_RETURN(const Certificate ca, ParseCertificate(ca_pem));
  const Store store(X509_STORE_new());
  const StoreContext context(X509_STORE_CTX_new());
  if (!store || !context || X509_STORE_add_cert(store.get(), ca.get()) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), certificate->get(), nullptr) != 1 ||
      X509_STORE_CTX_set_default(context.get(), "ssl_client") != 1) {
    return OpensslError("look at a certificate");
  }
  // Everything is looked at but whether this one certificate (not the authority's) is over.
  X509_STORE_CTX_set_verify_cb(context.get(), [](int good, X509_STORE_CTX* at) {
    return good == 1 || (X509_STORE_CTX_get_error(at) == X509_V_ERR_CERT_HAS_EXPIRED &&
                         X509_STORE_CTX_get_error_depth(at) == 0)
               ? 1
               : 0;
  });
  if (X509_verify_cert(context.get()) == 1) return absl::OkStatus();
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  return absl::UnauthenticatedError(
      fmt::format("the certificate is not of this farm's authority ({})",
                  X509_verify_cert_error_string(error)));
}

absl::Status InitCa(const std::string& folder, int64_t now_unix_s, const std::string& actor) {
  const std::string path = folder + "/ca.key";
  if (std::filesystem::exists(path)) {
    return absl::AlreadyExistsError(fmt::format(
        "'{}' is there already; every certificate of the farm depends on it. Name another folder, "
        "or remove it if no machine uses it",
        path));
  }
  HONE_RETURN_IF_ERROR(MakeDirectories(folder));
  HONE_ASSIGN_OR_RETURN(const Key key, NewKey());
  HONE_ASSIGN_OR_RETURN(const Certificate certificate,
                        NewCertificate({"Hone farm authority", now_unix_s - kBackdatedSeconds,
                                        now_unix_s + kCaSeconds},
                                       key.get()));
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get()));
  HONE_RETURN_IF_ERROR(AddExtension(certificate.get(), certificate.get(), NID_basic_constraints,
                                    "critical,CA:TRUE,pathlen:0"));
  HONE_RETURN_IF_ERROR(AddExtension(certificate.get(), certificate.get(), NID_key_usage,
                                    "critical,keyCertSign,cRLSign"));
  HONE_RETURN_IF_ERROR(
      AddExtension(certificate.get(), certificate.get(), NID_subject_key_identifier, "hash"));
  if (X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0) return OpensslError("sign");
  HONE_ASSIGN_OR_RETURN(const std::string key_pem, KeyPem(key.get()));
  HONE_ASSIGN_OR_RETURN(const std::string pem, CertificatePem(certificate.get()));
  HONE_RETURN_IF_ERROR(AppendIssue(folder, {.at_ms = now_unix_s * 1000,
                                            .actor = actor,
                                            .action = "init-ca",
                                            .subject = "authority",
                                            .detail = "serial " + SerialOf(certificate.get())}));
  HONE_RETURN_IF_ERROR(WriteKey(path, key_pem));
  return WriteFileAtomically(folder + "/ca.pem", pem);
}

absl::Status Issue(const IssueOptions& options) {
  const Identity identity{.role = options.role, .name = options.name};
  HONE_RETURN_IF_ERROR(ParseIdentity(identity.Uri()).status());
  HONE_RETURN_IF_ERROR(CheckOutFolder(options.out_folder, identity));
  const auto ca_file = ReadFile(options.ca_folder + "/ca.pem");
  if (absl::IsNotFound(ca_file.status())) {
    return Annotate(ca_file.status(), fmt::format("there is no authority in '{0}'; `honed init-ca "
                                                  "--ca {0}` makes one",
                                                  options.ca_folder));
  }
  HONE_ASSIGN_OR_RETURN(const std::string ca_pem, ca_file);
  HONE_ASSIGN_OR_RETURN(const std::string ca_key_pem, ReadKey(options.ca_folder + "/ca.key"));
  HONE_ASSIGN_OR_RETURN(const Certificate ca, ParseCertificate(ca_pem));
  HONE_RETURN_IF_ERROR(CheckEnd(options, ca.get()));
  const Bio bio(BIO_new_mem_buf(ca_key_pem.data(), static_cast<int>(ca_key_pem.size())));
  const Key ca_key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (!ca_key) return OpensslError("read the authority's key");
  HONE_ASSIGN_OR_RETURN(const Key key, NewKey());
  HONE_ASSIGN_OR_RETURN(
      const Certificate certificate,
      NewCertificate({fmt::format("{} {}", RoleName(options.role), options.name),
                      options.now_unix_s - kBackdatedSeconds, options.now_unix_s + options.seconds},
                     key.get()));
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(ca.get()));
  const bool server = options.role == CallerRole::kServer;
  const std::string names =
      fmt::format("URI:{}{}", identity.Uri(), server ? fmt::format(",DNS:{}", kServerName) : "");
  for (const auto& [nid, value] : std::initializer_list<std::pair<int, std::string>>{
           {NID_basic_constraints, "critical,CA:FALSE"},
           {NID_key_usage, "critical,digitalSignature"},
           {NID_ext_key_usage, server ? "serverAuth" : "clientAuth"},
           {NID_authority_key_identifier, "keyid"},
           {NID_subject_alt_name, names}}) {
    HONE_RETURN_IF_ERROR(AddExtension(certificate.get(), ca.get(), nid, value));
  }
  if (X509_sign(certificate.get(), ca_key.get(), EVP_sha256()) == 0) return OpensslError("sign");
  HONE_ASSIGN_OR_RETURN(const std::string key_pem, KeyPem(key.get()));
  HONE_ASSIGN_OR_RETURN(const std::string pem, CertificatePem(certificate.get()));
  HONE_RETURN_IF_ERROR(AppendIssue(
      options.ca_folder, {.at_ms = options.now_unix_s * 1000,
                          .actor = options.actor,
                          .action = "issue",
                          .subject = identity.Uri(),
                          .detail = fmt::format("serial {}, until {}", SerialOf(certificate.get()),
                                                UtcText(options.now_unix_s + options.seconds))}));
  HONE_RETURN_IF_ERROR(MakeDirectories(options.out_folder));
  HONE_RETURN_IF_ERROR(WriteKey(options.out_folder + "/key.pem", key_pem));
  HONE_RETURN_IF_ERROR(WriteFileAtomically(options.out_folder + "/cert.pem", pem));
  return WriteFileAtomically(options.out_folder + "/ca.pem", ca_pem);
}

}  // namespace hone::server
