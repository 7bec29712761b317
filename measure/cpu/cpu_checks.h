#pragma once

#include "measure/kind_checks.h"

namespace hone::measure {

/// Each looks at one thing.
Finding CheckInstructions();
Finding CheckCores();
Finding CheckGovernor(const SystemPaths& paths);
/// Watches the CPUs for a fifth of a second.
Finding CheckForeignLoad(const SystemPaths& paths, const MonotonicClock& clock);

const KindChecks& CpuChecks();

}  // namespace hone::measure
