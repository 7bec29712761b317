#include "measure/kind_checks.h"

#include <algorithm>
#include <iterator>

#include "ir/target.h"
#include "measure/cpu/cpu_checks.h"
#include "measure/cuda/cuda_checks.h"

namespace hone::measure {

ir::PerKind<KindChecks>& ChecksOfKinds() {
  static ir::PerKind<KindChecks> kinds = {{"cpu", &CpuChecks()}, {"cuda", &CudaChecks()}};
  return kinds;
}

std::vector<Finding> CheckDevices(const SystemPaths& paths, const MonotonicClock& clock) {
  std::vector<Finding> all;
  for (const ir::TargetKind* kind : ir::TargetKinds()) {
    const KindChecks* const checks = ChecksOfKinds().Find(kind->name());
    if (checks == nullptr) continue;
    std::vector<Finding> found = checks->Check(paths, clock);
    std::ranges::move(found, std::back_inserter(all));
  }
  return all;
}

}  // namespace hone::measure
