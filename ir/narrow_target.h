#pragma once

#include <vector>

#include "ir/target.h"
#include "ir/workload.h"

namespace hone::ir {

/// The target that a Workload's records and code are of: without the extensions (`+vnni`, `+bf16`)
/// that none of its dtypes can use, so that a machine with them has the log, the schedules and the
/// packages of one without.
Target NarrowedTo(const Target& target, const Workload& workload);
/// The same for several, as a model's: what any of them can use stays.
Target NarrowedTo(const Target& target, const std::vector<const Workload*>& workloads);

}  // namespace hone::ir
