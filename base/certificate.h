#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/identity.h"

// OpenSSL's certificates and keys as objects of ours, for those who read or make them.
namespace hone::x509 {

template <auto kFree>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Store = std::unique_ptr<X509_STORE, Free<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Free<X509_STORE_CTX_free>>;

/// The first certificate of a PEM text. kInvalidArgument: there is none.
absl::StatusOr<Certificate> ParseCertificate(const std::string& pem);
/// All of them, up to what is none, as gRPC reads them. kInvalidArgument: there is none.
absl::StatusOr<std::vector<Certificate>> ParseCertificates(const std::string& pem);
/// A private key without a passphrase. kInvalidArgument: there is none.
absl::StatusOr<Key> ParseKey(const std::string& pem);

/// kInvalidArgument: not exactly one URI SAN, or one of another form.
absl::StatusOr<Identity> IdentityOf(const X509* certificate);
/// When it is over, as Unix time.
int64_t EndOf(const X509* certificate);

/// "2026-10-17T12:00:00Z"
std::string UtcText(int64_t unix_s);

}  // namespace hone::x509
