#include "measure/device_probe.h"

#include <string>

#include "measure/cpu/cpu_probe.h"

namespace hone::measure {

ir::PerKind<DeviceProbe>& ProbesOfKinds() {
  static ir::PerKind<DeviceProbe> kinds = {{"cpu", &CpuDeviceProbe()}};
  return kinds;
}

absl::StatusOr<DeviceProbes> ProbeDevice(const ir::Target& target, const MonotonicClock& clock) {
  std::string why;
  if (!ir::HostCanRun(target, &why)) return absl::FailedPreconditionError(why);
  return ProbesOfKinds().Of(target).Probe(target, clock);
}

absl::StatusOr<DeviceRates> MeasureRates(const ir::Target& target, const MonotonicClock& clock) {
  std::string why;
  if (!ir::HostCanRun(target, &why)) return absl::FailedPreconditionError(why);
  return ProbesOfKinds().Of(target).Rates(target, clock);
}

}  // namespace hone::measure
