#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

// Certificates of a farm: one authority of its own, one certificate for each identity, whose only
// URI SAN is spiffe://hone/ROLE/NAME. Keys are P-256, in files that only their owner can read.
namespace hone::server {

enum class CallerRole : uint8_t { kServer, kSubmit, kMeasure, kPublish, kAdmin };

/// "server", "submit", "measure", "publish", "admin".
std::string_view RoleName(CallerRole role);

/// Who holds a certificate.
struct Identity {
  CallerRole role = CallerRole::kSubmit;
  std::string name;
  int64_t expires_unix_s = 0;

  /// "spiffe://hone/measure/w1"
  std::string Uri() const;
  /// What sessions and their requests are kept under: "alice" for spiffe://hone/submit/alice,
  /// "publish/alice" for another role of that name, which is somebody else.
  std::string Owner() const;
  bool operator==(const Identity&) const = default;
};

/// kUnauthenticated: no certificate, not exactly one URI SAN, or one of another form.
absl::StatusOr<Identity> IdentityOf(const std::string& certificate_pem);
/// kUnauthenticated unless the authority in `ca_pem` issued this client's certificate; whether that
/// is still valid is not looked at.
absl::Status IssuedBy(const std::string& ca_pem, const std::string& certificate_pem);
/// "spiffe://hone/ROLE/NAME" in two; kInvalidArgument otherwise. NAME: 1 to 64 of [A-Za-z0-9._-],
/// but no "." or "..": it also names the folder of its credentials.
absl::StatusOr<Identity> ParseIdentity(const std::string& uri);

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
/// (kInvalidArgument). It stands in that folder's journal before
/// anybody has it.
absl::Status Issue(const IssueOptions& options);

}  // namespace hone::server
