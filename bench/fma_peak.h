#pragma once

#include "base/core/clock.h"

namespace hone::bench {

/// The best multiply-add rate of the calling thread: GFLOP/s (two operations each), over several
/// numbers of independent accumulators, and which number gave it. Takes about `seconds`.
struct FmaPeak {
  double gflops = 0;
  int accumulators = 0;
};
FmaPeak MeasureFmaPeak(bool avx512, double seconds, const MonotonicClock& clock);

}  // namespace hone::bench
