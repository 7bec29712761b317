#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "ir/per_kind.h"
#include "ir/target.h"
#include "measure/others_watch.h"

namespace hone::measure {

/// A device of this machine as log and farm know it. The class is a function of the fingerprint, of
/// version KindVersions::device_class (docs/formats/log.md):
/// `cpu-1:AuthenticAMD-25-17-l2.1024K-l3.32768K-c2`. Records of one class compete.
struct HostDevice {
  std::string device_class;
  std::string fingerprint;  ///< a line per fact: model name, cpuid, caches, cores
  std::string driver;       ///< kernel and microcode, "Linux 6.1.0, microcode 0x2b"; of no class
  std::string target;       ///< text of the best target whose code it runs
  int cores = 1;            ///< of the host that its kernels can run on together
  std::string lock;         ///< what who measures on it locks (measure/device_lock.h)
};

/// The devices of a kind in this machine. Thread-safe.
class KindDevices {
 public:
  virtual ~KindDevices() = default;
  /// Device `number`, from 0. kNotFound: this machine has fewer.
  virtual absl::StatusOr<HostDevice> Describe(int number) const = 0;
  /// Who else uses device `number`, from now on; `clock` must outlive it. Null: nobody who would
  /// be noticed, so that nothing waits and nothing is noisy.
  virtual std::unique_ptr<OthersWatch> WatchOthers(int /*number*/,
                                                   const MonotonicClock& /*clock*/) const {
    return nullptr;
  }
  /// Cores of the host that a run for the target keeps busy while it is timed. Builders leave them
  /// alone: they work only between runs where there are too few cores for both.
  virtual int HostCores(const ir::Target& /*target*/) const { return 0; }
};

/// The kinds that a machine can be asked for. ir::PerKind says how to add one.
ir::PerKind<KindDevices>& DevicesOfHost();

/// KindDevices::Describe of a device by name, KIND:NUMBER, the number of at most four digits and
/// written in one way: those who measure on one share a lock. kInvalidArgument: no such name, or a
/// kind that this program knows nothing of.
absl::StatusOr<HostDevice> DescribeDevice(std::string_view name);

/// KindDevices::WatchOthers of a device by name; null where there is no such device.
std::unique_ptr<OthersWatch> WatchOthersOf(std::string_view name, const MonotonicClock& clock);

/// KindDevices::HostCores; 0 for a kind that this program knows nothing of.
int HostCoresOf(const ir::Target& target);

/// The class of this machine's first device of the target's kind, KIND:none where it has none.
std::string DeviceClassFor(const ir::Target& target);

}  // namespace hone::measure
