#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/expr.h"
#include "ir/index/interval.h"
#include "ir/index/linear.h"

namespace hone::ir {

/// What is known about the variables of an index expression. Var v lies in [0, extent[v]) where
/// extent[v] > 0.
struct VarRanges {
  std::vector<int64_t> extent;
  /// Bounds of a loaded value used as an index; null: unbounded.
  std::function<Interval(const ExprNode& load)> load_range;

  int64_t ExtentOf(int var) const {
    return var >= 0 && var < static_cast<int>(extent.size()) ? extent[var] : 0;
  }
};

/// The linear form of an i64 expression, simplified: (c·q + r) div c = q when 0 <= r < c, mod
/// likewise, nested divisions join, c·(x div c) + x mod c = x, min and max decided by ranges.
Linear ToLinear(const Expr& e, const VarRanges& ranges);
Interval BoundsOf(const Linear& linear, const VarRanges& ranges);
Interval BoundsOf(const Expr& e, const VarRanges& ranges);

/// Simplifies every integer subexpression and every condition; folds selects whose condition is
/// decided. Floats are left alone except inside folded selects.
Expr Simplify(const Expr& e, const VarRanges& ranges);
/// True or false when the ranges decide the condition.
std::optional<bool> Decide(const Expr& condition, const VarRanges& ranges);
/// The conjuncts of nested kAnd.
void SplitConjunction(const Expr& condition, std::vector<Expr>* conjuncts);
bool DependsOnVar(const Expr& e, int var);
bool HasLoad(const Expr& e);

}  // namespace hone::ir
