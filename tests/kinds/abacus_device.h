#pragma once

#include "runtime/device.h"
#include "tests/kinds/abacus.h"
#include "tests/kinds/abacus_memory.h"

namespace hone::abacus {

/// Makes packages for an abacus run in this process, on a device that has memory, a queue and a
/// thread of its own.
void RegisterDevice();

}  // namespace hone::abacus
