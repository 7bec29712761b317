#include "client/machine_warnings.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"

#include "base/core/cpu.h"
#include "measure/others_watch.h"

namespace hone::client {

int CpusHere() {
  const auto allowed = static_cast<int>(AllowedCpus().size());
  const double granted = CgroupCpuLimit();
  return granted > 0 ? std::min(allowed, static_cast<int>(std::ceil(granted))) : allowed;
}

std::string ManyThreadsText(int threads, int cpus) {
  if (threads <= cpus) return "";
  return fmt::format(
      "warning: {} threads on {} CPU{}: they wait for each other, which takes longer than with "
      "{}\n",
      threads, cpus, cpus == 1 ? "" : "s", cpus);
}

std::string BusyMachineText(double foreign_cpus) {
  if (foreign_cpus <= measure::OthersWatch::kDisturbing) return "";
  return fmt::format(
      "warning: other programs keep {:.1f} CPUs busy: measurements beside them are marked as "
      "noisy, and waiting for quiet moments costs time; end them first for exact results\n",
      foreign_cpus);
}

}  // namespace hone::client
