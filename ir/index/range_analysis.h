#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "ir/expr.h"
#include "ir/index/interval.h"
#include "ir/index/linear.h"
#include "ir/index/sum_rules.h"

namespace hone::ir {

/// Bounds of integer expressions by interval arithmetic on linear forms, sharpened by conditions
/// known to hold. Sound, not complete. Not thread-safe.
class RangeAnalysis {
 public:
  using LoadRange = std::function<Interval(const ExprNode& load)>;

  /// `vars[id]` bounds variable `id`; `load_range` those of a load (null: its dtype's).
  RangeAnalysis(std::vector<Interval> vars, LoadRange load_range)
      : vars_(std::move(vars)), load_range_(std::move(load_range)) {}

  Interval Of(const Expr& e);
  /// The same of an i64 that does not wrap, sharper: also by what is known of a part of its sum.
  Interval OfSum(const Expr& e);
  /// The linear form of an integer expression.
  Linear LinearOf(const Expr& e);

  /// Takes for granted that a bool expression is true (or false): comparisons of integers and what
  /// And, Or and Not make of them; the rest is ignored. Undone by Forget(Mark()).
  void Assume(const Expr& condition, bool truth);
  size_t Mark() const { return facts_.size(); }
  void Forget(size_t mark) { facts_.Shrink(mark); }

 private:
  Interval OfLinear(const Linear& form);
  Interval OfAtom(const Expr& e);
  Interval OfSelect(const Expr& e);
  void AssumeComparison(const ExprNode& comparison, bool truth);

  std::vector<Interval> vars_;
  LoadRange load_range_;
  KnownSums<Linear> facts_;
};

}  // namespace hone::ir
