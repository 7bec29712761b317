#pragma once

#include "ir/workload.h"

namespace hone::server {

/// Arithmetic that no schedule of the Workload avoids, as time of an f32 multiply-add unit: two for
/// each multiply-add of its contractions, a quarter of that where Winograd's F(4×4) may be used or
/// where the factors are integers (one instruction multiplies four times as many), half where they
/// are narrow floats. What else it computes is not counted, and memory is none of it: what is
/// measured may lie in caches. 0: it has no contraction.
double LeastFlop(const ir::Workload& workload);

}  // namespace hone::server
