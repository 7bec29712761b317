#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hone::ir {

/// How much a kernel may differ from the oracle; a kernel of a stricter class serves a laxer one.
/// In order of strictness. The numbers stand in the log: do not renumber.
enum class AccuracyClass : uint8_t { kStrict = 0, kDefault = 1, kFast = 2 };

inline constexpr int kNumAccuracyClasses = 3;

inline constexpr std::array<std::string_view, kNumAccuracyClasses> kAccuracyClassNames = {
    "strict", "default", "fast"};

constexpr std::string_view AccuracyClassName(AccuracyClass accuracy) {
  return kAccuracyClassNames[static_cast<size_t>(accuracy)];
}

/// The inverse of AccuracyClassName; nullopt for other texts.
constexpr std::optional<AccuracyClass> ParseAccuracyClass(std::string_view name) {
  for (size_t i = 0; i < kAccuracyClassNames.size(); ++i) {
    if (kAccuracyClassNames[i] == name) return static_cast<AccuracyClass>(i);
  }
  return std::nullopt;
}

}  // namespace hone::ir
