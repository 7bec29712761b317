#pragma once

#include <cstdint>

#include "ir/workload.h"

namespace hone::schedule {

/// Arithmetic operations per evaluation of the bodies; transcendental ones count 16.
int64_t CostOf(const ir::Stage& stage);
/// Nodes of the bodies as trees, index arithmetic included; counting ends soon after `most`.
int64_t NodesOf(const ir::Stage& stage, int64_t most);
/// Whether the bodies compute anything with floats, beyond choosing what to load.
bool Computes(const ir::Stage& stage);

}  // namespace hone::schedule
