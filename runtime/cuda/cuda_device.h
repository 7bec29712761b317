#pragma once

#include "runtime/device.h"

namespace hone::runtime {

/// This machine's first GPU. Code is ir::PackCudaModules; constants are uploaded when it is loaded;
/// a run is CUDA graphs, with copies of the caller's buffers before and behind.
const Device& CudaDevice();

}  // namespace hone::runtime
