#pragma once

/// A small product and a schedule of it, for tests that measure.
namespace hone::measure {

inline constexpr char kGemm[] =
    "workload 1\n"
    "x0: f32[48,64] input range(-1,1)\n"
    "x1: f32[64,96] constant\n"
    "s0: f32[48,96] output = sum[r0:64] (x0[i0, r0] * x1[r0, i1])\n";
// Packs the constant: with a prologue.
inline constexpr char kPacked[] =
    "s1 = pack(s0, x1, [i1/32, i0, i1%32])\n"
    "split(s0.i1, [2,16])\n"
    "split(s0.i0, 6, two_sizes)\n"
    "reorder(s0.i1.0, s0.i0.0, s0.r0, s0.i0.1, s0.i1.1, s0.i1.2)\n"
    "s2 = cache_write(s0, register, at=s0.i0.0)\n"
    "unroll(s0.i0.1)\n"
    "unroll(s0.i1.1)\n"
    "vectorize(s0.i1.2)\n"
    "parallel(s0.i1.0, 1)";

}  // namespace hone::measure
