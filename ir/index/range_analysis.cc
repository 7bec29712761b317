#include "ir/index/range_analysis.h"

#include <algorithm>

#include "ir/index/operator_bounds.h"
#include "ir/integer.h"

namespace hone::ir {
namespace {

bool IsOp(const Expr& e, BinaryOp op) { return e->kind == ExprKind::kBinary && e->binary() == op; }

}  // namespace

Linear RangeAnalysis::LinearOf(const Expr& e) {
  Linear form;
  if (const std::optional<int64_t> value = AsInt(e);
      value && !(e->dtype == DType::kU64 && *value < 0)) {
    form.constant = *value;
    return form;
  }
  // A widening cast keeps the value; other arithmetic than i64 might wrap and stays whole.
  if (e->kind == ExprKind::kCast && IsInteger(e->dtype) && !IsFloat(e->args[0]->dtype) &&
      IntervalOf(e->dtype).Contains(Of(e->args[0]))) {
    return LinearOf(e->args[0]);
  }
  if (e->dtype == DType::kI64 && e->kind == ExprKind::kBinary) {
    if (e->binary() == BinaryOp::kAdd || e->binary() == BinaryOp::kSub) {
      form = LinearOf(e->args[0]);
      form.Add(LinearOf(e->args[1]), e->binary() == BinaryOp::kAdd ? 1 : -1);
      return form;
    }
    if (e->binary() == BinaryOp::kMul) {
      for (size_t side = 0; side < 2; ++side) {
        const std::optional<int64_t> factor = AsInt(e->args[side]);
        if (!factor) continue;
        form.Add(LinearOf(e->args[1 - side]), *factor);
        return form;
      }
    }
  }
  form.Add(e, 1);
  return form;
}

Interval RangeAnalysis::Of(const Expr& e) {
  if (IsFloat(e->dtype)) return {};
  const Interval all = IntervalOf(e->dtype);
  const Linear form = LinearOf(e);
  const Interval range = OfLinear(form);
  return all.Contains(range) ? range : all;
}

Interval RangeAnalysis::OfLinear(const Linear& form) {
  const auto reached = [](Interval range) {
    // A contradiction means that the place is never reached: anything is true of it.
    if (range.low > range.high) range.high = range.low;
    return range;
  };
  const Interval range = BoundsOfSum(
      form, [&](const Expr& e) { return reached(facts_.Sharpen(Linear::Of(e), OfAtom(e))); });
  return reached(facts_.Sharpen(form, range));
}

Interval RangeAnalysis::OfSum(const Expr& e) {
  const Linear form = LinearOf(e);
  Interval range = OfLinear(form);
  for (const KnownSums<Linear>::Fact& fact : facts_.facts()) {
    Linear rest = form;
    Linear part;
    for (const Linear::Term& term : form.terms) {
      const bool known = std::ranges::any_of(
          fact.terms, [&term](const Linear::Term& other) { return Equal(other.atom, term.atom); });
      if (!known) continue;
      part.Add(term.atom, term.coefficient);
      rest.Add(term.atom, WrapMul(term.coefficient, -1));
    }
    const std::optional<int64_t> k = KnownSums<Linear>::Multiple(part.terms, fact.terms);
    if (k) range = Intersection(range, OfLinear(rest) + fact.range * Interval{*k, *k});
  }
  return range;
}

Interval RangeAnalysis::OfAtom(const Expr& e) {
  const Interval all = IntervalOf(e->dtype);
  Interval range = all;
  switch (e->kind) {
    case ExprKind::kVar:
      if (static_cast<size_t>(e->id) < vars_.size()) range = vars_[static_cast<size_t>(e->id)];
      break;
    case ExprKind::kLoad:
      if (load_range_) range = load_range_(*e);
      break;
    case ExprKind::kCast:
      if (!IsFloat(e->args[0]->dtype) && !IsBool(e->dtype)) range = Of(e->args[0]);
      break;
    case ExprKind::kSelect: range = OfSelect(e); break;
    case ExprKind::kUnary:
      if (e->unary() == UnaryOp::kNeg) range = Of(e->args[0]) * Interval{-1, -1};
      if (e->unary() == UnaryOp::kAbs) {
        const Interval a = Of(e->args[0]);
        range = {a.low > 0 ? a.low : 0, std::max(Saturated(-__int128{a.low}), a.high)};
      }
      if (e->unary() == UnaryOp::kSign) range = {-1, 1};
      break;
    case ExprKind::kBinary:
      range = BoundsOfBinary(e->binary(), Of(e->args[0]), Of(e->args[1]));
      break;
    case ExprKind::kConst: break;
  }
  return all.Contains(range) ? range : all;
}

Interval RangeAnalysis::OfSelect(const Expr& e) {
  const size_t mark = Mark();
  Assume(e->args[0], true);
  const Interval taken = Of(e->args[1]);
  Forget(mark);
  Assume(e->args[0], false);
  const Interval other = Of(e->args[2]);
  Forget(mark);
  return Hull(taken, other);
}

void RangeAnalysis::Assume(const Expr& condition, bool truth) {
  if (condition->kind == ExprKind::kUnary && condition->unary() == UnaryOp::kNot) {
    Assume(condition->args[0], !truth);
  } else if (IsOp(condition, truth ? BinaryOp::kAnd : BinaryOp::kOr)) {
    Assume(condition->args[0], truth);
    Assume(condition->args[1], truth);
  } else if (condition->kind == ExprKind::kBinary && IsComparison(condition->binary()) &&
             IsInteger(condition->args[0]->dtype)) {
    AssumeComparison(*condition, truth);
  }
}

void RangeAnalysis::AssumeComparison(const ExprNode& comparison, bool truth) {
  BinaryOp op = comparison.binary();
  if (!truth) {
    switch (op) {
      case BinaryOp::kLt: op = BinaryOp::kGe; break;
      case BinaryOp::kGe: op = BinaryOp::kLt; break;
      case BinaryOp::kGt: op = BinaryOp::kLe; break;
      case BinaryOp::kLe: op = BinaryOp::kGt; break;
      case BinaryOp::kNe: op = BinaryOp::kEq; break;
      default: return;
    }
  }
  Linear form = LinearOf(comparison.args[0]);
  form.Add(LinearOf(comparison.args[1]), -1);
  // form.terms + form.constant OP 0
  const int64_t edge = Saturated(-__int128{form.constant});
  Interval range;
  switch (op) {
    case BinaryOp::kLt: range.high = edge - 1; break;
    case BinaryOp::kLe: range.high = edge; break;
    case BinaryOp::kGt: range.low = edge + 1; break;
    case BinaryOp::kGe: range.low = edge; break;
    case BinaryOp::kEq: range = {edge, edge}; break;
    default: return;
  }
  facts_.Add(std::move(form.terms), range);
}

}  // namespace hone::ir
