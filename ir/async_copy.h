#pragma once

#include <cstdint>

#include "ir/stmt.h"

// Copies that a thread starts and that land later: pieces of Stores and Syncs, which have a field
// `extent` that other Stores and Syncs leave at 0.
namespace hone::ir {

/// A Store whose values may be written at any time until its thread has waited for it. In between
/// no thread may touch where it writes. Machines without such copies write at once.
Stmt AsyncStore(const Stmt& store);
bool IsAsyncStore(const StmtNode& node);

/// Ends the group of copies that this thread has started since the last commit; it may be empty.
Stmt CommitCopies();
bool IsCommit(const StmtNode& node);

/// This thread waits until at most so many of its latest groups are on their way. Others see what
/// has landed after a Sync.
Stmt AwaitCopies(int64_t groups);
/// -1: it is no wait.
int64_t AwaitedGroups(const StmtNode& node);

}  // namespace hone::ir
