#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hone::client {

/// How far a tuning is, for a program; what is not known is null.
struct ProgressFacts {
  std::string text;    ///< all of it in a line, for people
  double seconds = 0;  ///< since it began
  std::optional<double> budget_seconds;
  int64_t candidates = 0;
  std::optional<double> default_us,
      predicted_us;  ///< a run of the model: measured, and with the best
};

/// {"progress": {"text", "seconds", "budget_seconds", "candidates", "default_us", "predicted_us"}}
/// on one line.
std::string ProgressJson(const ProgressFacts& facts);

}  // namespace hone::client
