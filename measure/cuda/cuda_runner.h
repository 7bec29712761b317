#pragma once

#include "measure/kind_runner.h"

namespace hone::measure {

/// Candidates on an NVIDIA GPU: measure/cuda/cuda_candidate.h.
const KindRunner& CudaRunner();

}  // namespace hone::measure
