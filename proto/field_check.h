#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/hash128.h"
#include "proto/limits.h"

// Checks of single fields for convert*.cc; every error is kInvalidArgument and begins with the
// field's name.
namespace hone::proto {

inline constexpr int64_t kMaxNs = int64_t{86400} * 1'000'000'000 * 365;
inline constexpr int64_t kMaxMs = kMaxNs / 1'000'000;
inline constexpr double kMaxPartRatio = 1e6;

absl::Status InRange(int64_t value, int64_t low, int64_t high, std::string_view field);
absl::Status RealInRange(double value, double low, double high, std::string_view field);
absl::Status AtMost(size_t count, size_t most, std::string_view field);
absl::StatusOr<std::string> Bounded(const std::string& text, size_t least, size_t most,
                                    std::string_view field);
/// So many bytes of what prints.
absl::StatusOr<std::string> Printing(const std::string& text, size_t least, size_t most,
                                     std::string_view field);
/// 1 to kMaxNameBytes of what prints.
absl::StatusOr<std::string> Name(const std::string& text, std::string_view field);
/// At most kMaxTextBytes; what would steer a terminal is replaced, as by Cut.
absl::StatusOr<std::string> Text(const std::string& text, std::string_view field);
/// A resolved target text.
absl::StatusOr<std::string> TargetText(const std::string& text, std::string_view field);
absl::Status CheckSamples(const std::vector<int64_t>& samples, std::string_view field);

/// At most `most` bytes of it, as valid UTF-8 without control characters but \n and \t.
std::string Cut(std::string_view text, size_t most);

template <typename List>
absl::StatusOr<std::vector<int64_t>> Samples(const List& wire, std::string_view field) {
  if (absl::Status few = AtMost(static_cast<size_t>(wire.size()), kMaxSamples, field); !few.ok()) {
    return few;
  }
  std::vector<int64_t> samples(wire.begin(), wire.end());
  if (absl::Status good = CheckSamples(samples, field); !good.ok()) return good;
  return samples;
}

}  // namespace hone::proto
