#include "bench/fma_peak.h"

#include <immintrin.h>

#include <chrono>

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
void Try(F run, int accumulators, int lanes, double seconds, FmaPeak* best) {
  using Clock = std::chrono::steady_clock;
  long steps = 20000;
  for (auto begin = Clock::now();
       std::chrono::duration<double>(Clock::now() - begin).count() < seconds;) {
    auto t0 = Clock::now();
    g_sink = run(steps);
    double s = std::chrono::duration<double>(Clock::now() - t0).count();
    double gflops = 2.0 * lanes * accumulators * static_cast<double>(steps) / s * 1e-9;
    if (gflops > best->gflops) *best = {gflops, accumulators};
  }
}

}  // namespace

FmaPeak MeasureFmaPeak(bool avx512, double seconds) {
  FmaPeak best;
  const double each = seconds / 4;
  if (avx512) {
    Try(RunAvx512<8>, 8, 16, each, &best);
    Try(RunAvx512<12>, 12, 16, each, &best);
    Try(RunAvx512<16>, 16, 16, each, &best);
    Try(RunAvx512<24>, 24, 16, each, &best);
  } else {
    Try(RunAvx2<8>, 8, 8, each, &best);
    Try(RunAvx2<10>, 10, 8, each, &best);
    Try(RunAvx2<12>, 12, 8, each, &best);
    Try(RunAvx2<14>, 14, 8, each, &best);
  }
  return best;
}

}  // namespace hone::bench
