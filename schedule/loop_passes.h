#pragma once

#include <vector>

#include "ir/index/simplify.h"
#include "ir/stmt.h"

// What lowering does to a finished loop nest whatever the schedule says: both change neither what
// is computed nor its order within an element.
namespace hone::schedule {

/// Joins two serial loops of one length of which the later reads what the earlier wrote in the same
/// iteration, as in exp and sum of a row: what stands between them comes first. Only loops without
/// serial loops inside, and only where index arithmetic shows that no iteration reads or writes
/// what a later iteration of the other loop touches. `ranges` knows all loop variables.
ir::Stmt FuseLoops(const ir::Stmt& stmt, const std::vector<ir::Buffer>& buffers,
                   const ir::VarRanges& ranges);

/// Takes the last iteration out of a serial loop when masks of vector lanes are then known in all
/// the others: `n % width` elements are left over once, not tested for in every iteration.
ir::Stmt PeelMaskedTails(const ir::Stmt& stmt, ir::VarRanges& ranges);

/// The statement with `value` in place of the variable, which no loop inside binds.
ir::Stmt SubstituteVar(const ir::Stmt& stmt, int var, const ir::Expr& value);

/// The same condition without variables that cannot change it, as the lanes of vectors that stand
/// inside or outside together: 4·x + y < 40 is 4·x < 40 where y < 4.
ir::Expr OfWholeVectors(const ir::Expr& condition, const ir::VarRanges& ranges);

}  // namespace hone::schedule
