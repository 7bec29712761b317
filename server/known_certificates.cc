#include "server/known_certificates.h"

#include "base/status.h"

namespace hone::server {

absl::StatusOr<Identity> KnownCertificates::IdentityOf(std::string_view certificate_pem) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(certificate_pem);
    if (known != known_.end()) return known->second;
  }
  std::string pem(certificate_pem);
  HONE_ASSIGN_OR_RETURN(Identity identity, server::IdentityOf(pem));
  const std::lock_guard lock(mutex_);
  if (known_.size() >= kMost) known_.clear();
  known_.insert_or_assign(std::move(pem), identity);
  return identity;
}

std::vector<Identity> KnownCertificates::All() const {
  const std::lock_guard lock(mutex_);
  std::vector<Identity> all;
  for (const auto& [pem, identity] : known_) all.push_back(identity);
  return all;
}

size_t KnownCertificates::size() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

}  // namespace hone::server
