#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hone {

enum class CallerRole : uint8_t { kServer, kSubmit, kMeasure, kPublish, kAdmin };

/// "server", "submit", "measure", "publish", "admin".
std::string_view RoleName(CallerRole role);

/// Who holds a certificate: its only URI SAN is spiffe://hone/ROLE/NAME.
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

/// "spiffe://hone/ROLE/NAME" in two; kInvalidArgument otherwise. NAME: 1 to 64 of [A-Za-z0-9._-],
/// but no "." or "..": it also names the folder of its credentials.
absl::StatusOr<Identity> ParseIdentity(const std::string& uri);

}  // namespace hone
