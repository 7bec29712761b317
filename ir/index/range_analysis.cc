#include "ir/index/range_analysis.h"

#include <algorithm>
#include <array>

#include "ir/integer.h"

namespace hone::ir {
namespace {

int64_t FloorDivideBound(int64_t a, int64_t b) {
  return IsInfinite(a) ? a : FloorDivide(DType::kI64, a, b);
}

/// a // b for b >= 1.
Interval Divide(const Interval& a, const Interval& b) {
  const std::array<int64_t, 4> corners = {
      FloorDivideBound(a.low, b.low), FloorDivideBound(a.low, b.high),
      FloorDivideBound(a.high, b.low), FloorDivideBound(a.high, b.high)};
  return {*std::ranges::min_element(corners), *std::ranges::max_element(corners)};
}

/// a % b for b >= 1.
Interval Remainder(const Interval& a, const Interval& b) {
  if (b.low == b.high && a.IsBounded()) {
    const int64_t period = FloorDivide(DType::kI64, a.low, b.low);
    if (period == FloorDivide(DType::kI64, a.high, b.low)) {
      return {a.low - period * b.low, a.high - period * b.low};
    }
  }
  const Interval all = {0, b.high - 1};
  return a.low >= 0 ? Intersection(all, {0, a.high}) : all;
}

/// The factor k with a = k·b, for forms with the same atoms.
std::optional<int64_t> Multiple(const std::vector<Linear::Term>& a,
                                const std::vector<Linear::Term>& b) {
  if (a.size() != b.size() || a.empty()) return std::nullopt;
  int64_t multiple = 0;
  for (const Linear::Term& term : a) {
    const auto same = std::ranges::find_if(
        b, [&term](const Linear::Term& other) { return Equal(other.atom, term.atom); });
    if (same == b.end()) return std::nullopt;
    const int64_t ratio = FloorDivide(DType::kI64, term.coefficient, same->coefficient);
    if (WrapMul(ratio, same->coefficient) != term.coefficient) return std::nullopt;
    if (multiple != 0 && ratio != multiple) return std::nullopt;
    multiple = ratio;
  }
  return multiple;
}

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
  Interval range = {0, 0};
  for (const Linear::Term& term : form.terms) {
    Interval atom = OfAtom(term.atom);
    for (const Fact& fact : facts_) {
      if (const std::optional<int64_t> k = Multiple({{term.atom, 1}}, fact.terms)) {
        atom = Intersection(atom, fact.range * Interval{*k, *k});
      }
    }
    if (atom.low > atom.high) atom.high = atom.low;
    range = range + atom * Interval{term.coefficient, term.coefficient};
  }
  for (const Fact& fact : facts_) {
    if (const std::optional<int64_t> k = Multiple(form.terms, fact.terms)) {
      range = Intersection(range, fact.range * Interval{*k, *k});
    }
  }
  // A contradiction means that the place is never reached: anything is true of it.
  if (range.low > range.high) range.high = range.low;
  return range + Interval{form.constant, form.constant};
}

Interval RangeAnalysis::OfSum(const Expr& e) {
  const Linear form = LinearOf(e);
  Interval range = OfLinear(form);
  for (const Fact& fact : facts_) {
    Linear rest = form;
    Linear part;
    for (const Linear::Term& term : form.terms) {
      const bool known = std::ranges::any_of(
          fact.terms, [&term](const Linear::Term& other) { return Equal(other.atom, term.atom); });
      if (!known) continue;
      part.Add(term.atom, term.coefficient);
      rest.Add(term.atom, WrapMul(term.coefficient, -1));
    }
    const std::optional<int64_t> k = Multiple(part.terms, fact.terms);
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
    case ExprKind::kBinary: range = OfBinary(e); break;
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

Interval RangeAnalysis::OfBinary(const Expr& e) {
  const Interval a = Of(e->args[0]);
  const Interval b = Of(e->args[1]);
  const bool positive = b.low >= 1;
  switch (e->binary()) {
    case BinaryOp::kAdd: return a + b;
    case BinaryOp::kSub: return a + b * Interval{-1, -1};
    case BinaryOp::kMul: return a * b;
    case BinaryOp::kMin: return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case BinaryOp::kMax: return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case BinaryOp::kDiv:
      if (positive) return Divide(a, b);
      break;
    case BinaryOp::kMod:
      if (positive) return Remainder(a, b);
      break;
    case BinaryOp::kTruncDiv:
      if (positive && a.low >= 0) return Divide(a, b);
      break;
    case BinaryOp::kTruncMod:
      if (positive && a.low >= 0) return Remainder(a, b);
      break;
    case BinaryOp::kAnd:
      if (a.low >= 0 && b.low >= 0) return {0, std::min(a.high, b.high)};
      break;
    case BinaryOp::kShr:
      if (b.low == b.high && b.low >= 0 && b.low < 62 && a.low >= 0) {
        return Divide(a, {int64_t{1} << b.low, int64_t{1} << b.low});
      }
      break;
    default: break;
  }
  return IntervalOf(e->dtype);
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
  facts_.push_back({std::move(form.terms), range});
}

}  // namespace hone::ir
