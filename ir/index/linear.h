#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/expr.h"
#include "ir/index/linear_sum.h"

namespace hone::ir {

/// A total order on expressions that does not depend on addresses: negative, 0 where they are
/// equal, positive.
int Compare(const Expr& a, const Expr& b);

struct ExprOrder {
  int operator()(const Expr& a, const Expr& b) const { return Compare(a, b); }
};

/// An integer expression as a sum. Atoms are variables or expressions that are not linear
/// (floor-div, mod, min, max, loads, …).
using Linear = LinearSum<Expr, ExprOrder>;

/// a - b; nothing where its constant wraps, which says nothing of which is larger.
std::optional<Linear> Difference(const Linear& a, const Linear& b);
Expr ToExpr(const Linear& linear);
/// The largest g > 0 known to divide every value of `linear` (its constant included); 0 when it is
/// always 0.
int64_t KnownFactor(const Linear& linear);

}  // namespace hone::ir
