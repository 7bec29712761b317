#include "server/certificate_ends.h"

#include <algorithm>
#include <utility>

#include "base/credential_check.h"
#include "base/log.h"

namespace hone::server {

CertificateEnds::CertificateEnds(const Credentials& own,
                                 std::function<std::vector<Identity>()> callers)
    : callers_(std::move(callers)) {
  if (own.certificate.empty()) return;
  if (const auto holder = HolderOf(own); holder.ok()) {
    own_.push_back({holder->Uri(), holder->expires_unix_s});
  }
  if (const auto end = AuthorityEndOf(own); end.ok()) own_.push_back({kAuthority, *end});
}

std::vector<CertificateEnd> CertificateEnds::All(int64_t now_unix_s) const {
  std::map<std::string, int64_t> last;
  for (const Identity& who : callers_()) {
    int64_t& end = last[who.Uri()];
    end = std::max(end, who.expires_unix_s);
  }
  std::erase_if(last, [&](const auto& item) { return item.second <= now_unix_s; });
  std::vector<CertificateEnd> all = own_;
  for (const auto& [subject, end] : last) all.push_back({subject, end});
  return all;
}

void CertificateEnds::Tell(int64_t now_unix_s) {
  for (const CertificateEnd& certificate : All(now_unix_s)) {
    const int64_t left_s = certificate.unix_s - now_unix_s;
    if (left_s > kSoonSeconds) continue;
    const auto told = told_unix_s_.find(certificate.subject);
    if (told != told_unix_s_.end() && now_unix_s - told->second < kTellEverySeconds) continue;
    told_unix_s_[certificate.subject] = now_unix_s;
    LogEvent(LogLevel::kWarning, "certificate_ends_soon",
             {{"subject", certificate.subject},
              {"end", UtcText(certificate.unix_s)},
              {"days", left_s / 86400}});
  }
}

}  // namespace hone::server
