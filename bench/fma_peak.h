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

/// The clock of the calling thread's core, GHz: best rate of a chain of dependent additions, of
/// which every x86 core does one a cycle. Takes about `seconds`.
double MeasureGigahertz(double seconds, const MonotonicClock& clock);

}  // namespace hone::bench
