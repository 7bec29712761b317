#include "measure/device_rates.h"

#include <algorithm>

namespace hone::measure {

double DeviceRates::OperationsPerSecond(ir::ArithmeticUnit unit) const {
  const double own = operations_per_second[static_cast<size_t>(unit)];
  return own > 0 ? own : operations_per_second[static_cast<size_t>(ir::ArithmeticUnit::kF32)];
}

double DeviceRates::BoundNs(const ir::WorkloadCost& cost) const {
  double rate = memory_bytes_per_second;
  for (const MemoryLevel& cache : caches) {
    if (cost.bytes > static_cast<double>(cache.bytes)) continue;
    rate = cache.bytes_per_second;
    break;
  }
  double seconds = cost.bytes / rate;
  for (size_t unit = 0; unit < cost.operations.size(); ++unit) {
    const double peak = OperationsPerSecond(static_cast<ir::ArithmeticUnit>(unit));
    seconds = std::max(seconds, cost.operations[unit] / peak);
  }
  return 1e9 * seconds;
}

}  // namespace hone::measure
