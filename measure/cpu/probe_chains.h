#pragma once

#include <cstdint>

#include "ir/arithmetic_unit.h"
#include "ir/cpu/cpu_target.h"

namespace hone::measure {

/// Keeps a unit of one core busy: `rounds` steps of twelve independent chains. Returns how many
/// operations that were, two of a multiply-add. `sink` has room for 64 bytes.
using ProbeChains = double(int64_t rounds, float* sink);

/// The unit as the target's code drives it; the host must have its instructions. Null: the target
/// has none for it. Without VNNI bytes are multiplied as pairs of 16 bits.
ProbeChains* ProbeChainsOf(const ir::CpuTarget& target, ir::ArithmeticUnit unit);

/// f32 multiply-adds of AVX2.
double FmaAvx2(int64_t rounds, float* sink);

}  // namespace hone::measure
