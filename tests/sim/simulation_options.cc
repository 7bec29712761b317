#include "tests/sim/simulation_options.h"

#include <array>
#include <cstddef>

namespace hone::sim {

std::string_view NameOf(Mistake mistake) {
  constexpr std::array<std::string_view, kNumMistakes> kNames = {"none",
                                                                 "send-before-commit",
                                                                 "reuse-start",
                                                                 "forget-open-leases",
                                                                 "close-without-lease",
                                                                 "accept-any-token",
                                                                 "duplicate-by-content",
                                                                 "no-refund",
                                                                 "lost-credit",
                                                                 "wall-clock-leases",
                                                                 "low-synchronous",
                                                                 "forget-events",
                                                                 "forget-suspects",
                                                                 "ignore-deadline",
                                                                 "forget-deadline",
                                                                 "worker-clock",
                                                                 "answer-apart",
                                                                 "show-before-commit",
                                                                 "swap-artifacts",
                                                                 "forget-started",
                                                                 "believe-after-restart",
                                                                 "forget-revoked",
                                                                 "forget-drained",
                                                                 "forget-pause"};
  return kNames[static_cast<size_t>(mistake)];
}

SimulationOptions OptionsFor(Mistake mistake, uint64_t seed) {
  const bool roles = mistake == Mistake::kSwapArtifacts;
  return {.seed = seed,
          .mistake = mistake,
          .workers = roles ? 0 : 3,
          .builders = roles ? 1 : 0,
          .runners = roles ? 1 : 0,
          .doubts = mistake == Mistake::kBelieveAfterRestart,
          .operators = mistake == Mistake::kForgetRevoked || mistake == Mistake::kForgetDrained,
          .pauses = mistake == Mistake::kForgetPause};
}

}  // namespace hone::sim
