#pragma once

#include <string>

#include "measure/device_probe.h"

namespace hone::measure {

/// This machine's first GPU: copies and multiply-adds by two kernels of its own, timed by the
/// device's events. Tensor cores are not probed.
const DeviceProbe& CudaDeviceProbe();

/// The PTX of those kernels, for any chip from sm_80 on; the tests assemble it.
///     probe_copy(to, from, rounds, repeats): each thread copies 64 bytes a round, `repeats` times
///     probe_fma(to, rounds, unused, unused): each thread does kFmasOfARound multiply-adds a round
std::string CudaProbePtx();

}  // namespace hone::measure
