#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "server/ca.h"

namespace hone::server {

/// Who holds the certificates that callers show: reading one takes a tenth of a millisecond, which
/// is more than a look-up in the log, and a client shows the same one with every call. Only the
/// reading is spared: whether it is ours is proved in each handshake, and whether it has expired or
/// was revoked is for the caller to ask each time. Thread-safe.
class KnownCertificates {
 public:
  /// Beyond so many all are forgotten: a farm has fewer, and each is about a kilobyte.
  static constexpr size_t kMost = 4096;

  /// As server::IdentityOf, whose errors are not kept.
  absl::StatusOr<Identity> IdentityOf(std::string_view certificate_pem);
  size_t size() const;
  /// One for each certificate.
  std::vector<Identity> All() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Identity, std::less<>> known_;  ///< guarded by mutex_
};

}  // namespace hone::server
