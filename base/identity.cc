#include "base/identity.h"

#include <array>

#include "fmt/format.h"

namespace hone {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"server", "submit", "measure", "publish",
                                                    "admin"};
constexpr std::string_view kPrefix = "spiffe://hone/";

}  // namespace

std::string_view RoleName(CallerRole role) { return kRoles.at(static_cast<size_t>(role)); }

std::string Identity::Uri() const { return fmt::format("{}{}/{}", kPrefix, RoleName(role), name); }

std::string Identity::Owner() const {
  return role == CallerRole::kSubmit ? name : fmt::format("{}/{}", RoleName(role), name);
}

absl::StatusOr<Identity> ParseIdentity(const std::string& uri) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(fmt::format(
        "'{}' is no identity of a farm; one is spiffe://hone/ROLE/NAME with ROLE of "
        "server, submit, measure, publish, admin and NAME of letters, digits, . _ - (but . and "
        ".. alone are none: they name folders)",
        uri));
  };
  if (uri.rfind(kPrefix, 0) != 0) return bad();
  const std::string rest = uri.substr(kPrefix.size());
  const size_t slash = rest.find('/');
  if (slash == std::string::npos) return bad();
  Identity identity;
  identity.name = rest.substr(slash + 1);
  constexpr size_t kMaxName = 64;
  if (identity.name == "." || identity.name == "..") return bad();
  if (identity.name.empty() || identity.name.size() > kMaxName ||
      identity.name.find_first_not_of(
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
          "._-") != std::string::npos) {
    return bad();
  }
  for (size_t i = 0; i < kRoles.size(); ++i) {
    if (rest.substr(0, slash) != kRoles[i]) continue;
    identity.role = static_cast<CallerRole>(i);
    return identity;
  }
  return bad();
}

}  // namespace hone
