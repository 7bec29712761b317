#pragma once

#include <cstdint>

#include "ir/stmt.h"

// Copies of boxes of a tensor into swizzled shared memory, which one thread begins and a machine
// makes (TMA of NVIDIA's GPUs), and barriers in shared memory that say when they have landed.
namespace hone::ir {

/// A kFor of kind kBox and one iteration around a `copy` that means what is done: asynchronous
/// stores of numbers of an argument, zeros where there are none. What no reader looks at may
/// differ. It goes to element `to` of `buffer`, and begins at row and column of the tensor of map
/// `map` of the LoopNest; what a row has more than the map's box is further boxes beside it. It
/// arrives at barrier `slot` of `barriers`.
struct BoxCopy {
  int buffer = -1, barriers = -1, map = -1;
  Expr to, row, column, slot;
};
Stmt CopyOfBox(const BoxCopy& box, int var, Stmt copy);
BoxCopy BoxOf(const StmtNode& loop);

/// One thread: so many barriers begin, which others know after a Sync.
Stmt BeginBarriers(int barriers, int64_t count);
/// One thread: so many bytes will arrive at a barrier in its present phase, which then ends.
Stmt ExpectBoxes(int barriers, Expr slot, int64_t bytes);
/// All threads: AwaitCopies where copies of boxes end a phase of a barrier, by its parity.
Stmt AwaitBoxes(int64_t groups, int barriers, Expr slot, Expr parity);
/// Ends a group of copies as CommitCopies; of boxes that needs no order of the machine.
Stmt CommitBoxes(int barriers);

/// Number of barriers; 0: another statement.
int64_t BegunBarriers(const StmtNode& node);
/// Bytes; 0: another statement.
int64_t ExpectedBytes(const StmtNode& node);

}  // namespace hone::ir
