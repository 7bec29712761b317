#pragma once

#include "ir/expr.h"
#include "ir/workload.h"

namespace hone::ir {

/// The neutral value of result `k` of a combiner for a body of this dtype: 0, 1, +inf or the type's
/// maximum, -inf or the type's minimum. The index of kArgMin and kArgMax starts at the largest i64
/// and that of the Last forms at -1, so that every element wins against it, even an infinite one.
/// kNone has none (programmer error).
Expr Identity(Combiner combiner, DType dtype, int k);

/// combine(a, b) of the combiners with one result and of kSumSumSq (which adds both); the arg
/// combiners and kNone have no such form (programmer error).
Expr Combine(Combiner combiner, Expr a, Expr b);

/// The operator of Combine: addition for those that it does not know.
BinaryOp OperatorOf(Combiner combiner);

/// Whether the pair (a_value, a_index) replaces (b_value, b_index) under an arg combiner. A NaN
/// wins against numbers and keeps its place by the index rule, as in the reductions of ONNX.
Expr ArgWins(Combiner combiner, Expr a_value, Expr a_index, Expr b_value, Expr b_index);

}  // namespace hone::ir
