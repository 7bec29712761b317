#pragma once

#include <cstdint>

#include "ir/target.h"
#include "ir/workload_cost.h"

namespace hone::compiler {

/// What a default schedule of a kernel of this cost takes on one of the target's threads, at
/// nominal rates, ns.
double AloneNs(const ir::WorkloadCost& cost, const ir::Target& target);

/// How many of the target's threads are worth using for a kernel of this cost that was not
/// measured, at nominal rates: each is to have a microsecond of work, the price of handing it its
/// part and waiting for it. At least 1.
int32_t WorthThreads(const ir::WorkloadCost& cost, const ir::Target& target);

}  // namespace hone::compiler
