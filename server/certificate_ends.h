#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/credentials.h"
#include "base/identity.h"

namespace hone::server {

struct CertificateEnd {
  std::string subject;  ///< an identity's URI, or kAuthority
  int64_t unix_s = 0;

  bool operator==(const CertificateEnd&) const = default;
};

/// When certificates are over that honed knows of: its own, its authority's, and those that callers
/// have shown since it started. All may be called from any thread, Tell from one.
class CertificateEnds {
 public:
  static constexpr char kAuthority[] = "authority";
  static constexpr int64_t kSoonSeconds = int64_t{14} * 86400;
  static constexpr int64_t kTellEverySeconds = 86400;

  /// `own` is empty in plaintext; `callers`, called from any thread, names an identity once for
  /// each of its certificates.
  CertificateEnds(const Credentials& own, std::function<std::vector<Identity>()> callers);

  /// By subject, each with the certificate that lasts longest. Callers whose last one is over are
  /// left out: they may be gone.
  std::vector<CertificateEnd> All(int64_t now_unix_s) const;
  /// Logs certificate_ends_soon for each that is over within kSoonSeconds, once a day.
  void Tell(int64_t now_unix_s);

 private:
  const std::function<std::vector<Identity>()> callers_;
  std::vector<CertificateEnd> own_;
  std::map<std::string, int64_t> told_unix_s_;  ///< by subject
};

}  // namespace hone::server
