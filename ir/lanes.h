#pragma once

#include <cstdint>

#include "ir/stmt.h"

// What the lanes of a GPU's warp do together without shared memory.
namespace hone::ir {

/// A kSync of `lanes` neighbouring threads of a block, 2, 4, 8, 16 or 32: those whose numbers
/// (thread.x fastest) begin at a multiple of `lanes`. Each has a number at buffers[0][index] of a
/// register buffer, its own; afterwards each has there what they make combined, in pairs, then
/// pairs of pairs. All threads of a group come to the same statement, and no memory that threads
/// share is ordered by it. No tuples.
Stmt CombineLanes(int buffer, Expr index, int64_t lanes, Combiner combiner);

/// How many lanes meet here; 0: all threads of the block do, or it is another statement.
int64_t LanesOf(const StmtNode& node);

}  // namespace hone::ir
