#include "measure/device_probe.h"

#include <string>

#include "base/status.h"
#include "measure/cpu/cpu_probe.h"
#include "measure/cuda/cuda_probe.h"

namespace hone::measure {
namespace {

absl::StatusOr<const DeviceProbe*> ProbeFor(const ir::Target& target) {
  std::string why;
  if (!ir::HostCanRun(target, &why)) return absl::FailedPreconditionError(why);
  const DeviceProbe* const probe = ProbesOfKinds().Find(target.kind);
  if (probe != nullptr) return probe;
  return absl::FailedPreconditionError("this program measures nothing on " + target.text);
}

}  // namespace

absl::StatusOr<ir::ByUnit<double>> DeviceProbe::Operations(const ir::Target& target,
                                                           const MonotonicClock& clock) const {
  HONE_ASSIGN_OR_RETURN(const DeviceRates rates, Rates(target, clock));
  return rates.operations_per_second;
}

ir::PerKind<DeviceProbe>& ProbesOfKinds() {
  static ir::PerKind<DeviceProbe> kinds = {{"cpu", &CpuDeviceProbe()},
                                           {"cuda", &CudaDeviceProbe()}};
  return kinds;
}

absl::StatusOr<DeviceProbes> ProbeDevice(const ir::Target& target, const MonotonicClock& clock) {
  HONE_ASSIGN_OR_RETURN(const DeviceProbe* probe, ProbeFor(target));
  DeviceProbes probes;
  HONE_ASSIGN_OR_RETURN(probes.rates, probe->Rates(target, clock));
  HONE_ASSIGN_OR_RETURN(probes.noise, probe->Noise(target, clock));
  return probes;
}

absl::StatusOr<DeviceRates> MeasureRates(const ir::Target& target, const MonotonicClock& clock) {
  HONE_ASSIGN_OR_RETURN(const DeviceProbe* probe, ProbeFor(target));
  return probe->Rates(target, clock);
}

}  // namespace hone::measure
