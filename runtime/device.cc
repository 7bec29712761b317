#include "runtime/device.h"

#include "runtime/cpu/cpu_device.h"

namespace hone::runtime {

ir::PerKind<Device>& DevicesOfKinds() {
  static ir::PerKind<Device> kinds = {{"cpu", &CpuDevice()}};
  return kinds;
}

}  // namespace hone::runtime
