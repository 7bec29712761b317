#pragma once

#include "runtime/device.h"

namespace hone::runtime {

/// Code is an ELF shared object, constants are used where they lie, steps run one after the other
/// on a Crew.
const Device& CpuDevice();

}  // namespace hone::runtime
