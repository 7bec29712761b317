#pragma once

#include "schedule/trace.h"

namespace hone::schedule {

/// The same Trace with its register tiles in memory: the code generator wants constant indices of
/// registers, which takes unrolled loops that few random Traces have.
Trace InMemory(Trace trace);

}  // namespace hone::schedule
