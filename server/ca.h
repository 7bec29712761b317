#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

#include "base/identity.h"

// Certificates of a farm: one authority of its own, one certificate for each identity, whose only
// URI SAN is spiffe://hone/ROLE/NAME. Keys are P-256, in files that only their owner can read.
namespace hone::server {

using hone::CallerRole;
using hone::Identity;
using hone::ParseIdentity;
using hone::RoleName;

/// kUnauthenticated: no certificate, not exactly one URI SAN, or one of another form.
absl::StatusOr<Identity> IdentityOf(const std::string& certificate_pem);
/// kUnauthenticated unless the authority in `ca_pem` issued this client's certificate; whether that
/// is still valid is not looked at.
absl::Status IssuedBy(const std::string& ca_pem, const std::string& certificate_pem);

/// kInvalidArgument for honed's own role: nobody calls under it, so refusing it changes nothing.
absl::Status MayRevoke(const Identity& identity);

/// Makes a new authority in a folder: ca.pem and ca.key. kAlreadyExists where there is one. `actor`
/// is who does it, for the journal (issue_journal.h).
absl::Status InitCa(const std::string& folder, int64_t now_unix_s,
                    const std::string& actor = "unknown");

struct IssueOptions {
  std::string ca_folder;
  CallerRole role = CallerRole::kSubmit;
  std::string name;
  std::string out_folder;  ///< gets ca.pem, cert.pem and key.pem
  int64_t now_unix_s = 0;
  int64_t seconds = int64_t{365} * 86400;  ///< how long it is valid; negative: it has expired
  std::string actor = "unknown";           ///< who issues it, for the journal
};
/// Issues a certificate of the authority in `ca_folder`, which it does not outlive
/// (kInvalidArgument). It stands in that folder's journal before anybody has it. kAlreadyExists:
/// the output folder has the certificate of another identity, or an authority.
absl::Status Issue(const IssueOptions& options);

}  // namespace hone::server
