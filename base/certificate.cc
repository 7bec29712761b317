#include "base/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <utility>

#include "fmt/format.h"

#include "base/status.h"

namespace hone::x509 {
namespace {

using Names = std::unique_ptr<GENERAL_NAMES, Free<GENERAL_NAMES_free>>;

/// A text to read PEM from; the text must outlive it. Nobody has credentials of megabytes: of what
/// is no such file nothing is read, and OpenSSL's sizes are ints.
Bio Reader(const std::string& pem) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  return Bio(
      BIO_new_mem_buf(pem.data(), pem.size() > kMostBytes ? 0 : static_cast<int>(pem.size())));
}

}  // namespace

absl::StatusOr<Certificate> ParseCertificate(const std::string& pem) {
  const Bio bio = Reader(pem);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    ERR_clear_error();
    return absl::InvalidArgumentError("this is no certificate in PEM");
  }
  return certificate;
}

absl::StatusOr<std::vector<Certificate>> ParseCertificates(const std::string& pem) {
  const Bio bio = Reader(pem);
  std::vector<Certificate> certificates;
  while (Certificate next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    certificates.push_back(std::move(next));
  }
  ERR_clear_error();  // the last one, of there being no more, too
  if (certificates.empty()) return absl::InvalidArgumentError("this is no certificate in PEM");
  return certificates;
}

absl::StatusOr<Key> ParseKey(const std::string& pem) {
  const Bio bio = Reader(pem);
  // Without this OpenSSL would ask the terminal for a passphrase.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  if (!key) {
    ERR_clear_error();
    return absl::InvalidArgumentError("this is no private key in PEM without a passphrase");
  }
  return key;
}

absl::StatusOr<Identity> IdentityOf(const X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::string uri;
  int uris = 0;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    ++uris;
    const ASN1_STRING* text = name->d.uniformResourceIdentifier;
    uri.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
               static_cast<size_t>(ASN1_STRING_length(text)));
  }
  if (uris != 1) {
    return absl::InvalidArgumentError("the certificate has not exactly one URI name");
  }
  HONE_ASSIGN_OR_RETURN(Identity identity, ParseIdentity(uri));
  identity.expires_unix_s = EndOf(certificate);
  return identity;
}

int64_t EndOf(const X509* certificate) {
  tm end{};
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end);
  return ::timegm(&end);
}

std::string UtcText(int64_t unix_s) {
  const time_t seconds = unix_s;
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace hone::x509
