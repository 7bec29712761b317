#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "base/credentials.h"
#include "base/identity.h"

namespace hone {

/// What a program needs credentials for.
struct CredentialUse {
  std::vector<CallerRole> roles;  ///< one of them
  /// A certificate that is over by then will not do; none: its end is not looked at.
  std::optional<int64_t> at_unix_s;
};

/// Whether the three files of `folder`, which these are, belong together and serve this use: a
/// handshake that they fail says little of why. kInvalidArgument: which file, and what to do.
absl::Status CheckCredentials(const Credentials& credentials, const std::string& folder,
                              const CredentialUse& use);

/// Reads and checks those of a program that is configured with that folder (--tls): what is wrong
/// with them is wrong with the configuration, kInvalidArgument.
absl::StatusOr<Credentials> ReadConfiguredCredentials(const std::string& folder,
                                                      const CredentialUse& use);

/// Whose certificate that is. kInvalidArgument: there is none, or it names nobody of a farm.
absl::StatusOr<Identity> HolderOf(const Credentials& credentials);

/// When the authority in them is over, as Unix time; of several, the one that lasts longest.
/// kInvalidArgument: there is none.
absl::StatusOr<int64_t> AuthorityEndOf(const Credentials& credentials);

/// "2026-10-17T12:00:00Z"
std::string UtcText(int64_t unix_s);

}  // namespace hone
