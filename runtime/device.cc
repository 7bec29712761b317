#include "runtime/device.h"

#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"

namespace hone::runtime {

Status PreparedPlan::SetStream(void*) {
  return Status(StatusCode::kFailedPrecondition,
                "the package is for the host, which has no streams; a package for a GPU has");
}

ir::PerKind<Device>& DevicesOfKinds() {
  static ir::PerKind<Device> kinds = {{"cpu", &CpuDevice()}, {"cuda", &CudaDevice()}};
  return kinds;
}

}  // namespace hone::runtime
