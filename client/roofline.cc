#include "client/roofline.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/status.h"

namespace hone::client {

double Roofline::BoundNs(const compiler::WorkloadCost& cost) const {
  double rate = memory_bytes_per_second;
  for (const measure::MemoryLevel& cache : caches) {
    if (cost.bytes > static_cast<double>(cache.bytes)) continue;
    rate = cache.bytes_per_second;
    break;
  }
  return 1e9 * std::max(cost.flop / flop_per_second, cost.bytes / rate);
}

Roofline ProbedRoofline(double core_flop_per_second, double memory_bytes_per_second,
                        const ir::Target& target) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  const int64_t cached = measure::ProbesOfKinds().Of(target).CacheBytes(target);
  return {{.flop_per_second = target.threads * core_flop_per_second,
           .caches = {{cached, kUnknown}},
           .memory_bytes_per_second = memory_bytes_per_second},
          false};
}

absl::StatusOr<Roofline> MeasureRoofline(const ir::Target& target, const MonotonicClock& clock) {
  HONE_ASSIGN_OR_RETURN(const measure::DeviceRates rates, measure::MeasureRates(target, clock));
  return Roofline{rates, false};
}

absl::StatusOr<std::optional<Roofline>> FindRoofline(const ir::Target& target,
                                                     const MonotonicClock& clock) {
  std::string why;
  if (ir::HostCanRun(target, &why)) return MeasureRoofline(target, clock);
  const measure::DeviceProbe* const probe = measure::ProbesOfKinds().Find(target.kind);
  const auto nominal = probe == nullptr ? std::nullopt : probe->Nominal(target);
  if (!nominal) return std::nullopt;
  return Roofline{*nominal, true};
}

}  // namespace hone::client
