#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hone {

/// A 128-bit hash: the identity of a Workload, a Trace, a Space. Equal on every platform. Printed
/// as 32 lower-case hexadecimal digits, `high` first.
struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;

  std::string ToHex() const;

  /// The inverse of ToHex; nullopt unless exactly 32 lower-case hexadecimal digits.
  static std::optional<Hash128> FromHex(std::string_view text);

  friend auto operator<=>(const Hash128&, const Hash128&) = default;

  template <typename H>
  friend H AbslHashValue(H state, const Hash128& hash) {
    return H::combine(std::move(state), hash.high, hash.low);
  }
};

/// MurmurHash3_x64_128 of Austin Appleby (SMHasher, public domain); high and low are its h1 and h2.
/// Not for secrets and not against an adversary: use Sha256 there.
Hash128 HashBytes(std::string_view bytes, uint32_t seed = 0);

}  // namespace hone

template <>
struct std::hash<hone::Hash128> {
  size_t operator()(const hone::Hash128& value) const noexcept {
    return static_cast<size_t>(value.low);
  }
};
