#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone::measure {

/// How an attempt ended. Stored in logs: do not renumber.
enum class Outcome : uint8_t {
  kOk = 0,
  kIllegal = 1,      ///< the Trace does not apply to the Workload
  kBuildFailed = 2,  ///< Hone could not make code of it
  kBuildTimeout = 3,
  kBuildCrashed = 4,
  kRunCrashed = 5,  ///< a signal, a guard page, a forbidden system call
  kRunTimeout = 6,
  kOutOfMemory = 7,  ///< of the builder or the runner
  kWrongAnswer = 8,
  kWorkerLost = 9,  ///< nobody knows; may be tried again
};

inline constexpr int kNumOutcomes = 10;

/// "ok", "illegal", "build_failed", ...: the one text form.
constexpr std::string_view ToString(Outcome outcome) {
  constexpr std::string_view kNames[kNumOutcomes] = {
      "ok",          "illegal",     "build_failed",  "build_timeout", "build_crashed",
      "run_crashed", "run_timeout", "out_of_memory", "wrong_answer",  "worker_lost"};
  return kNames[static_cast<int>(outcome)];
}

constexpr std::optional<Outcome> ParseOutcome(std::string_view text) {
  for (int i = 0; i < kNumOutcomes; ++i) {
    if (ToString(static_cast<Outcome>(i)) == text) return static_cast<Outcome>(i);
  }
  return std::nullopt;
}

}  // namespace hone::measure
