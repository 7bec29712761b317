#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/target.h"
#include "measure/device_rates.h"
#include "proto/farm_messages.h"

// What the probes of a farm's devices mean for a target. Thread-safe.
namespace hone::proto {

/// What a worker says of the rates of its best target; `number` counts its probes from 1.
Probes ProbesOf(const measure::DeviceProbes& probes, const ir::Target& target, int64_t number);

/// What such a device can do at most with all that `target` has. An older worker tells no caches:
/// then bytes count where memory alone can hold them.
measure::DeviceRates RatesOf(const Probes& probes, const ir::Target& target);

/// Takes the device's probes where it is of the class and faster than those before.
void TakeFaster(const DeviceInfo& device, std::string_view device_class,
                std::optional<Probes>& fastest);

}  // namespace hone::proto
