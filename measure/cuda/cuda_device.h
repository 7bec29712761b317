#pragma once

#include "measure/device.h"

namespace hone::measure {

/// The GPUs of this machine, in the driver's order; of one that is cut into slices (MIG) the slices
/// that this process may use. No context is made.
const KindDevices& CudaDevices();

}  // namespace hone::measure
