#include "measure/cpu/probe_chains.h"

#include <immintrin.h>

#include "ir/cpu/tile_config.h"

namespace hone::measure {
namespace {

constexpr int kChains = 12;  // latency 4 to 5 times two a cycle, and some room

__attribute__((target("avx512f"))) double FmaAvx512(int64_t rounds, float* sink) {
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 factor = _mm512_set1_ps(0.999F), term = _mm512_set1_ps(0.001F);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  _mm512_storeu_ps(sink, sums[0]);
  return static_cast<double>(rounds) * kChains * 16 * 2;
}

/// Two products of 16 bits a lane and their sum, then an addition.
__attribute__((target("avx2"))) double PairsAvx2(int64_t rounds, float* sink) {
  __m256i sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_epi32(i);
  const __m256i factor = _mm256_set1_epi16(3), term = _mm256_set1_epi32(5);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i)
      sums[i] = _mm256_add_epi32(_mm256_madd_epi16(sums[i], factor), term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm256_add_epi32(sums[0], sums[i]);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sink), sums[0]);
  return static_cast<double>(rounds) * kChains * 8 * 4;
}

__attribute__((target("avx512f,avx512bw"))) double PairsAvx512(int64_t rounds, float* sink) {
  __m512i sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_epi32(i);
  const __m512i factor = _mm512_set1_epi16(3), term = _mm512_set1_epi32(5);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i)
      sums[i] = _mm512_add_epi32(_mm512_madd_epi16(sums[i], factor), term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm512_add_epi32(sums[0], sums[i]);
  _mm512_storeu_si512(sink, sums[0]);
  return static_cast<double>(rounds) * kChains * 16 * 4;
}

/// Four products of bytes a lane and their sum.
__attribute__((target("avx2,avxvnni"))) double BytesAvxVnni(int64_t rounds, float* sink) {
  __m256i sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_epi32(i);
  const __m256i factor = _mm256_set1_epi16(3), term = _mm256_set1_epi32(5);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_dpbusd_avx_epi32(sums[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm256_add_epi32(sums[0], sums[i]);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(sink), sums[0]);
  return static_cast<double>(rounds) * kChains * 8 * 8;
}

__attribute__((target("avx512f,avx512vnni"))) double BytesAvx512(int64_t rounds, float* sink) {
  __m512i sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_epi32(i);
  const __m512i factor = _mm512_set1_epi16(3), term = _mm512_set1_epi32(5);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbusd_epi32(sums[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm512_add_epi32(sums[0], sums[i]);
  _mm512_storeu_si512(sink, sums[0]);
  return static_cast<double>(rounds) * kChains * 16 * 8;
}

/// Two products of bf16 a lane and their sum.
__attribute__((target("avx512f,avx512bf16"))) double PairsOfBf16(int64_t rounds, float* sink) {
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512bh factor = _mm512_cvtne2ps_pbh(sums[1], sums[1]), term = factor;
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  _mm512_storeu_ps(sink, sums[0]);
  return static_cast<double>(rounds) * kChains * 16 * 4;
}

/// Products of whole tiles, of bytes or of bf16: four sums of two by two factors; a latency of 52
/// cycles is four times the 16 that one takes.
template <bool kBytes>
__attribute__((target("amx-tile,amx-int8,amx-bf16"))) double Tiles(int64_t rounds, float* sink) {
  ir::TileConfig config;
  for (int tile = 0; tile < 8; ++tile) config.rows[tile] = 16, config.row_bytes[tile] = 64;
  _tile_loadconfig(&config);
  for (int64_t r = 0; r < rounds; ++r) {
    if constexpr (kBytes) {
      _tile_dpbusd(0, 4, 6);
      _tile_dpbusd(1, 4, 7);
      _tile_dpbusd(2, 5, 6);
      _tile_dpbusd(3, 5, 7);
    } else {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  alignas(64) float sums[256];
  _tile_stored(0, sums, 64);
  _tile_release();
  *sink = sums[0];
  return static_cast<double>(rounds) * 4 * 16 * 16 * (kBytes ? 64 : 32) * 2;
}

}  // namespace

__attribute__((target("avx2,fma"))) double FmaAvx2(int64_t rounds, float* sink) {
  __m256 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 factor = _mm256_set1_ps(0.999F), term = _mm256_set1_ps(0.001F);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  _mm256_storeu_ps(sink, sums[0]);
  return static_cast<double>(rounds) * kChains * 8 * 2;
}

ProbeChains* ProbeChainsOf(const ir::CpuTarget& target, ir::ArithmeticUnit unit) {
  const bool wide = target.isa == ir::Isa::kAvx512;
  if (unit == ir::ArithmeticUnit::kF32) return wide ? FmaAvx512 : FmaAvx2;
  if (unit == ir::ArithmeticUnit::kDotBF16)
    return target.amx ? Tiles<false> : target.bf16 ? PairsOfBf16 : nullptr;
  if (target.amx) return Tiles<true>;
  if (target.vnni) return wide ? BytesAvx512 : BytesAvxVnni;
  return wide ? PairsAvx512 : PairsAvx2;
}

}  // namespace hone::measure
