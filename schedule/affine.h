#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "ir/expr.h"

namespace hone::schedule {

/// Inclusive bounds of an integer; the extreme int64 values stand for "unbounded".
struct Interval {
  static constexpr int64_t kMin = std::numeric_limits<int64_t>::min() / 4;
  static constexpr int64_t kMax = std::numeric_limits<int64_t>::max() / 4;
  int64_t low = kMin;
  int64_t high = kMax;
};

/// What is known about the variables of an index expression. Var v lies in [0, extent[v]) where
/// extent[v] > 0.
struct VarRanges {
  std::vector<int64_t> extent;
  /// Bounds of a loaded value used as an index; null: unbounded.
  std::function<Interval(const ir::ExprNode& load)> load_range;

  int64_t ExtentOf(int var) const {
    return var >= 0 && var < static_cast<int>(extent.size()) ? extent[var] : 0;
  }
};

/// An integer expression as constant + Σ coefficient · atom. Atoms are variables or expressions
/// that are not linear (floor-div, mod, min, max, loads, …), kept in a fixed order, so equal sums
/// have equal forms.
struct Linear {
  int64_t constant = 0;
  struct Term {
    ir::Expr atom;
    int64_t coefficient = 0;
  };
  std::vector<Term> terms;
};

/// The linear form of an i64 expression, simplified: (c·q + r) div c = q when 0 <= r < c, mod
/// likewise, nested divisions join, c·(x div c) + x mod c = x, min and max decided by ranges.
Linear ToLinear(const ir::Expr& e, const VarRanges& ranges);
ir::Expr ToExpr(const Linear& linear);
Interval BoundsOf(const Linear& linear, const VarRanges& ranges);
Interval BoundsOf(const ir::Expr& e, const VarRanges& ranges);

/// Simplifies every integer subexpression and every condition; folds selects whose condition is
/// decided. Floats are left alone except inside folded selects.
ir::Expr Simplify(const ir::Expr& e, const VarRanges& ranges);
/// True or false when the ranges decide the condition.
std::optional<bool> Decide(const ir::Expr& condition, const VarRanges& ranges);
/// The largest g > 0 known to divide every value of `linear` (its constant included); 0 when it is
/// always 0.
int64_t KnownFactor(const Linear& linear);
/// The conjuncts of nested kAnd.
void SplitConjunction(const ir::Expr& condition, std::vector<ir::Expr>* conjuncts);
bool DependsOnVar(const ir::Expr& e, int var);
bool HasLoad(const ir::Expr& e);

}  // namespace hone::schedule
