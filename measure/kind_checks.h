#pragma once

#include <string>
#include <vector>

#include "base/core/clock.h"
#include "ir/per_kind.h"
#include "measure/finding.h"

namespace hone::measure {

/// Where the system tells of itself; tests give folders of their own.
struct SystemPaths {
  std::string proc = "/proc";
  std::string sys = "/sys";
};

/// What `hone doctor` asks of a kind of device: what may keep it from working or from being
/// measured well. Thread-safe.
class KindChecks {
 public:
  virtual ~KindChecks() = default;
  /// In a fixed order, in less than a second. That this machine has no such device is good.
  virtual std::vector<Finding> Check(const SystemPaths& paths,
                                     const MonotonicClock& clock) const = 0;
};

/// The kinds that have some. ir::PerKind says how to add one.
ir::PerKind<KindChecks>& ChecksOfKinds();

/// KindChecks::Check of every kind, the CPU's first.
std::vector<Finding> CheckDevices(const SystemPaths& paths, const MonotonicClock& clock);

}  // namespace hone::measure
