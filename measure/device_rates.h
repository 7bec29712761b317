#pragma once

#include <cstdint>
#include <vector>

#include "ir/workload_cost.h"

namespace hone::measure {

/// What fits so many bytes is read at this rate.
struct MemoryLevel {
  int64_t bytes = 0;
  double bytes_per_second = 0;

  friend bool operator==(const MemoryLevel&, const MemoryLevel&) = default;
};

/// What a device can do at most with all that a target has.
struct DeviceRates {
  /// By unit, two of a multiply-add; 0: it lacks the unit, or nobody asked.
  ir::ByUnit<double> operations_per_second{};
  std::vector<MemoryLevel> caches;  ///< the smallest first
  double memory_bytes_per_second = 0;

  /// The unit's, or that of the f32 unit, which does its work where it is lacking.
  double OperationsPerSecond(ir::ArithmeticUnit unit) const;

  /// The roofline: no direct schedule is faster than this, ns. The arithmetic of each unit at its
  /// peak, units side by side, or every byte moved once from the level of memory that can hold them
  /// all. Winograd's multiplications are fewer, so that it may be faster (schedule/least_work.h).
  double BoundNs(const ir::WorkloadCost& cost) const;
};

/// What a farm's worker says of its device.
struct DeviceProbes {
  DeviceRates rates;
  double noise = 0;  ///< spread of equal pieces of work, from 0
};

}  // namespace hone::measure
