#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "ir/cpu/cpu_target.h"
#include "measure/device_probe.h"
#include "runtime/crew.h"

namespace hone::measure {

/// Measures what a CPU can do at most, in pieces so short that the best of many is free of what
/// else the machine does. Not thread-safe.
class CpuProbe {
 public:
  /// Both must outlive it.
  CpuProbe(runtime::Crew& crew, const MonotonicClock& clock);

  /// What one thread does, two of a multiply-add; others are assumed to be as fast (each core has
  /// its own units). The host must run the target. 0: the target has no such instruction.
  double OperationsPerSecond(const ir::CpuTarget& target, ir::ArithmeticUnit unit);

  /// The rate of `threads` threads together, reading `bytes` each. kResourceExhausted: no memory.
  absl::StatusOr<double> BytesPerSecond(int threads, int64_t bytes, int repeats);

  /// Typical spread of one thread's equal pieces of work of about a millisecond: half of their
  /// interquartile range over their median, from 0.
  double Noise();

 private:
  template <typename Job>
  double BestNs(int threads, int repeats, const Job& job);
  float* SinkOf(int thread) { return sinks_[static_cast<size_t>(thread)].values; }

  struct alignas(64) Sink {
    float values[16];
  };
  runtime::Crew& crew_;
  const MonotonicClock& clock_;
  std::vector<Sink> sinks_;
};

const DeviceProbe& CpuDeviceProbe();

}  // namespace hone::measure
