#pragma once

#include "ir/stmt.h"

// What loops that are products of matrices of narrow numbers (ir/mma.h, ir/tile_product.h) are made
// of.
namespace hone::ir {

/// The statement that is all of a body, blocks of one statement aside; null: there are several.
const StmtNode* OnlyStatement(const StmtNode& around);

/// The loop that is all of a body and runs on one thread; null: another statement.
const StmtNode* OnlyLoop(const StmtNode& around);

/// A number of f16, bf16 or a byte in memory, widened to f32 or i32; null: another factor.
Expr NarrowLoad(const Expr& factor);

}  // namespace hone::ir
