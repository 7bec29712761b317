#pragma once

#include <vector>

#include "ir/artifact.h"
#include "ir/stmt.h"

namespace hone::ir {

/// The memory that each iteration of a phase's parallel loop touches, from the bounds of its
/// indices: by argument and stride at most one entry that reads and one that writes. An index that
/// is not linear in the parallel variable counts as stride 0 over all that it can reach. Empty: the
/// phase is not parallel or several such loops, or an index that it checks may stop it. Sound, not
/// exact.
std::vector<PhaseAccess> AccessesOf(const LoopNest& nest, const Phase& phase);

}  // namespace hone::ir
