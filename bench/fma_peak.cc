#include "bench/fma_peak.h"

#include <immintrin.h>

#include <algorithm>

namespace hone::bench {
namespace {

// Without fast-math no compiler may fold a chain of multiply-adds, so the loop stays as written.
template <int kCount>
__attribute__((target("avx512f"))) float RunAvx512(long steps) {
  __m512 a[kCount], x = _mm512_set1_ps(1.0000001f), y = _mm512_set1_ps(1e-9f);
  for (auto& v : a) v = _mm512_set1_ps(1);
  for (long i = 0; i < steps; ++i) {
#pragma GCC unroll 32
    for (int k = 0; k < kCount; ++k) {
      a[k] = _mm512_fmadd_ps(a[k], x, y);
    }
  }
  float sum = 0;
  for (auto& v : a) sum += _mm512_cvtss_f32(v);
  return sum;
}

template <int kCount>
__attribute__((target("avx2,fma"))) float RunAvx2(long steps) {
  __m256 a[kCount], x = _mm256_set1_ps(1.0000001f), y = _mm256_set1_ps(1e-9f);
  for (auto& v : a) v = _mm256_set1_ps(1);
  for (long i = 0; i < steps; ++i) {
#pragma GCC unroll 32
    for (int k = 0; k < kCount; ++k) {
      a[k] = _mm256_fmadd_ps(a[k], x, y);
    }
  }
  float sum = 0;
  for (auto& v : a) sum += _mm256_cvtss_f32(v);
  return sum;
}

volatile float g_sink;

template <typename F>
void Try(F run, int accumulators, int lanes, double seconds, const MonotonicClock& clock,
         FmaPeak* best) {
  long steps = 20000;
  const int64_t begin = clock.NowNs();
  for (int64_t now = begin; static_cast<double>(now - begin) * 1e-9 < seconds;) {
    const int64_t before = clock.NowNs();
    g_sink = run(steps);
    now = clock.NowNs();
    const double ns = static_cast<double>(std::max<int64_t>(1, now - before));
    const double gflops = 2.0 * lanes * accumulators * static_cast<double>(steps) / ns;
    if (gflops > best->gflops) *best = {gflops, accumulators};
  }
}

}  // namespace

FmaPeak MeasureFmaPeak(bool avx512, double seconds, const MonotonicClock& clock) {
  FmaPeak best;
  const double each = seconds / 4;
  if (avx512) {
    Try(RunAvx512<8>, 8, 16, each, clock, &best);
    Try(RunAvx512<12>, 12, 16, each, clock, &best);
    Try(RunAvx512<16>, 16, 16, each, clock, &best);
    Try(RunAvx512<24>, 24, 16, each, clock, &best);
  } else {
    Try(RunAvx2<8>, 8, 8, each, clock, &best);
    Try(RunAvx2<10>, 10, 8, each, clock, &best);
    Try(RunAvx2<12>, 12, 8, each, clock, &best);
    Try(RunAvx2<14>, 14, 8, each, clock, &best);
  }
  return best;
}

double MeasureGigahertz(double seconds, const MonotonicClock& clock) {
  constexpr long kSteps = 20000, kAdditions = 16;
  double best = 0;
  const int64_t begin = clock.NowNs();
  for (int64_t now = begin; static_cast<double>(now - begin) * 1e-9 < seconds;) {
    const int64_t before = clock.NowNs();
    long sum = 0, one = 1;
    for (long i = 0; i < kSteps; ++i) {
      // Adds registers: an addition of a constant costs some cores no cycle.
      asm volatile(
          "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
          "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
          "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
          "add %1, %0\n add %1, %0\n add %1, %0\n add %1, %0\n"
          : "+r"(sum)
          : "r"(one));
    }
    now = clock.NowNs();
    best = std::max(best, static_cast<double>(kSteps * kAdditions) /
                              static_cast<double>(std::max<int64_t>(1, now - before)));
  }
  return best;
}

}  // namespace hone::bench
