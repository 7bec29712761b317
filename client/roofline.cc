#include "client/roofline.h"

#include <string>

#include "base/status.h"

namespace hone::client {

absl::StatusOr<std::optional<Roofline>> FindRoofline(const ir::Target& target,
                                                     const MonotonicClock& clock) {
  std::string why;
  if (ir::HostCanRun(target, &why)) {
    HONE_ASSIGN_OR_RETURN(const measure::DeviceRates rates, measure::MeasureRates(target, clock));
    return Roofline{rates, false};
  }
  const measure::DeviceProbe* const probe = measure::ProbesOfKinds().Find(target.kind);
  const auto nominal = probe == nullptr ? std::nullopt : probe->Nominal(target);
  if (!nominal) return std::nullopt;
  return Roofline{*nominal, true};
}

}  // namespace hone::client
