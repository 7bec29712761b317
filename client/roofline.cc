#include "client/roofline.h"

#include <algorithm>
#include <limits>

#include "base/status.h"
#include "measure/device_probe.h"
#include "runtime/crew.h"

namespace hone::client {

double Roofline::BoundNs(const compiler::WorkloadCost& cost, const ir::Target& target) const {
  double rate = memory_bytes_per_second;
  if (cost.bytes <= static_cast<double>(target.l2_bytes * target.threads)) {
    rate = l2_bytes_per_second;
  } else if (cost.bytes <= static_cast<double>(target.l3_bytes)) {
    rate = l3_bytes_per_second;
  }
  return 1e9 * std::max(cost.flop / flop_per_second, cost.bytes / rate);
}

Roofline ProbedRoofline(double core_flop_per_second, double memory_bytes_per_second,
                        const ir::Target& target) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  return {.flop_per_second = target.threads * core_flop_per_second,
          .l2_bytes_per_second = kUnknown,
          .l3_bytes_per_second = kUnknown,
          .memory_bytes_per_second = memory_bytes_per_second};
}

absl::StatusOr<Roofline> MeasureRoofline(const ir::Target& target, const MonotonicClock& clock) {
  std::string why;
  if (!ir::HostCanRun(target, &why)) return absl::FailedPreconditionError(why);
  auto crew = runtime::Crew::Create({.threads = target.threads, .cpus = {}});
  if (!crew.ok()) return ToAbsl(crew.status());
  measure::CpuProbe probe(**crew, clock);
  Roofline roofline;
  const int threads = target.threads;
  roofline.flop_per_second = threads * probe.FlopPerSecond(target.isa == ir::Isa::kAvx512);
  // Half a level leaves room for what else lives there.
  HONE_ASSIGN_OR_RETURN(const double l2, probe.BytesPerSecond(1, target.l2_bytes / 2, 200));
  roofline.l2_bytes_per_second = threads * l2;
  HONE_ASSIGN_OR_RETURN(roofline.l3_bytes_per_second,
                        probe.BytesPerSecond(threads, target.l3_bytes / 2 / threads, 20));
  HONE_ASSIGN_OR_RETURN(roofline.memory_bytes_per_second,
                        probe.BytesPerSecond(threads, (int64_t{128} << 20) / threads, 5));
  return roofline;
}

}  // namespace hone::client
