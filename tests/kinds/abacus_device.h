#pragma once

#include "runtime/device.h"
#include "tests/kinds/abacus.h"

namespace hone::abacus {

/// Makes packages for an abacus run in this process, on a device that has memory, a queue and a
/// thread of its own.
void RegisterDevice();

/// From now on whatever is run fails, until the device is found again.
void LoseDevice(bool lost);

}  // namespace hone::abacus
