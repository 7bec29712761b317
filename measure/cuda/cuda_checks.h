#pragma once

#include "measure/kind_checks.h"

namespace hone::measure {

const KindChecks& CudaChecks();

}  // namespace hone::measure
