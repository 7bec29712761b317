#pragma once

#include <map>
#include <string>

#include "base/core/random.h"
#include "ir/workload.h"
#include "schedule/schedule.h"
#include "schedule/trace.h"

namespace hone::schedule {

/// What a Trace uses, for the histogram.
struct TraceUse {
  std::map<std::string, int> counts;  ///< "split", "tail mask", "place register", …
  bool has_tail = false;              ///< a masked or two-size split that leaves a remainder
  int stages = 0;                     ///< live Stages
};

/// A random Trace, each instruction of which applies to the Workload; it may still be illegal as a
/// whole. `kind`: "" for a CPU; "winograd" and "online_softmax" begin with that algorithm, "grid"
/// binds to blocks and threads.
Trace MakeTrace(const ir::Workload& workload, Random& random, const std::string& kind,
                TraceUse* use);

/// The same Trace with its register tiles in memory: the code generator wants constant indices of
/// registers, which takes unrolled loops that few random Traces have.
Trace InMemory(Trace trace);

}  // namespace hone::schedule
