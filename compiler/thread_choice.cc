#include "compiler/thread_choice.h"

#include <algorithm>

namespace hone::compiler {

double AloneNs(const ir::WorkloadCost& cost, const ir::Target& target) {
  // A thread that reads its level-2 cache, and default schedules at a third of a bound that counts
  // a generous clock.
  constexpr double kBytesPerNs = 32, kShareOfMost = 1.0 / 3;
  const double flop_per_ns = ir::MostFlopPerNs(target) / target.threads * kShareOfMost;
  return std::max(cost.flop() / flop_per_ns, cost.bytes / kBytesPerNs);
}

int32_t WorthThreads(const ir::WorkloadCost& cost, const ir::Target& target) {
  constexpr double kLeastShareNs = 1000;
  return static_cast<int32_t>(
      std::clamp<double>(AloneNs(cost, target) / kLeastShareNs, 1, target.threads));
}

}  // namespace hone::compiler
