#pragma once

#include "ir/workload.h"

namespace hone::schedule {

/// Gives zero for the f32 exponentials of a softmax, exp(x - maximum of the xs), that would be
/// subnormal: below -87.3, as under a mask of -100. The row has a one beside them, so this is far
/// below rounding; x86 takes some hundred cycles for an operation on subnormal numbers, and the
/// product that reads the row would do one for each. MLAS and PyTorch cut there, too. Other
/// exponentials keep their subnormal results.
void ZeroTinyExponentials(ir::Workload& workload);

}  // namespace hone::schedule
