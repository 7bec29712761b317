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

}  // namespace hone::sim
