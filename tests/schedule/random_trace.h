#pragma once

#include <string>

#include "base/core/random.h"
#include "ir/workload.h"
#include "schedule/trace.h"
#include "tests/schedule/trace_use.h"

namespace hone::schedule {

/// A random Trace, each instruction of which applies to the Workload; it may still be illegal as a
/// whole. `kind`: "" for a CPU; "winograd" and "online_softmax" begin with that algorithm, "grid"
/// binds to blocks and threads.
Trace MakeTrace(const ir::Workload& workload, Random& random, const std::string& kind,
                TraceUse* use);

}  // namespace hone::schedule
