#include "proto/probed_rates.h"

#include <limits>

#include "measure/device_probe.h"

namespace hone::proto {

Probes ProbesOf(const measure::DeviceProbes& probes, const ir::Target& target, int64_t number) {
  const auto of_core = [&](ir::ArithmeticUnit unit) {
    return probes.rates.operations_per_second[static_cast<size_t>(unit)] / target.threads;
  };
  return {.flop_per_second = of_core(ir::ArithmeticUnit::kF32),
          .memory_bytes_per_second = probes.rates.memory_bytes_per_second,
          .noise = probes.noise,
          .number = number,
          .dot_i8_per_second = of_core(ir::ArithmeticUnit::kDotI8),
          .dot_bf16_per_second = of_core(ir::ArithmeticUnit::kDotBF16),
          .caches = probes.rates.caches};
}

measure::DeviceRates RatesOf(const Probes& probes, const ir::Target& target) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  measure::DeviceRates rates;
  rates.operations_per_second = {target.threads * probes.flop_per_second,
                                 target.threads * probes.dot_i8_per_second,
                                 target.threads * probes.dot_bf16_per_second};
  rates.caches = probes.caches;
  if (rates.caches.empty()) {
    rates.caches = {{measure::ProbesOfKinds().Of(target).CacheBytes(target), kUnknown}};
  }
  rates.memory_bytes_per_second = probes.memory_bytes_per_second;
  return rates;
}

void TakeFaster(const DeviceInfo& device, std::string_view device_class,
                std::optional<Probes>& fastest) {
  if (device_class.empty() || device.device.device_class != device_class || !device.probes) return;
  if (!fastest || device.probes->flop_per_second > fastest->flop_per_second)
    fastest = device.probes;
}

}  // namespace hone::proto
