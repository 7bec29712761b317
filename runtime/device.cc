#include "runtime/device.h"

#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"

namespace hone::runtime {

ir::PerKind<Device>& DevicesOfKinds() {
  static ir::PerKind<Device> kinds = {{"cpu", &CpuDevice()}, {"cuda", &CudaDevice()}};
  return kinds;
}

}  // namespace hone::runtime
