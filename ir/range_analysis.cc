#include "ir/range_analysis.h"

#include <algorithm>
#include <array>

#include "ir/integer.h"

namespace hone::ir {
namespace {

using Wide = __int128;

int64_t Saturate(Wide value) {
  return static_cast<int64_t>(
      std::clamp<Wide>(value, -Wide{Interval::kInfinite}, Wide{Interval::kInfinite}));
}

bool Infinite(int64_t bound) {
  return bound <= -Interval::kInfinite || bound >= Interval::kInfinite;
}

int64_t SaturatedSum(int64_t a, int64_t b) {
  if (Infinite(a)) return a;
  if (Infinite(b)) return b;
  return Saturate(Wide{a} + b);
}

Interval Sum(const Interval& a, const Interval& b) {
  return {SaturatedSum(a.lo, b.lo), SaturatedSum(a.hi, b.hi)};
}

Interval Times(const Interval& a, const Interval& b) {
  const std::array<Wide, 4> corners = {Wide{a.lo} * b.lo, Wide{a.lo} * b.hi, Wide{a.hi} * b.lo,
                                       Wide{a.hi} * b.hi};
  return {Saturate(*std::ranges::min_element(corners)),
          Saturate(*std::ranges::max_element(corners))};
}

Interval Union(const Interval& a, const Interval& b) {
  return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
}

Interval Both(const Interval& a, const Interval& b) {
  return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)};
}

int64_t FloorDivideBound(int64_t a, int64_t b) {
  return Infinite(a) ? a : FloorDivide(DType::kI64, a, b);
}

/// a // b for b >= 1.
Interval Divide(const Interval& a, const Interval& b) {
  const std::array<int64_t, 4> corners = {
      FloorDivideBound(a.lo, b.lo), FloorDivideBound(a.lo, b.hi), FloorDivideBound(a.hi, b.lo),
      FloorDivideBound(a.hi, b.hi)};
  return {*std::ranges::min_element(corners), *std::ranges::max_element(corners)};
}

/// a % b for b >= 1.
Interval Remainder(const Interval& a, const Interval& b) {
  if (b.lo == b.hi && !Infinite(a.lo) && !Infinite(a.hi)) {
    const int64_t period = FloorDivide(DType::kI64, a.lo, b.lo);
    if (period == FloorDivide(DType::kI64, a.hi, b.lo)) {
      return {a.lo - period * b.lo, a.hi - period * b.lo};
    }
  }
  const Interval all = {0, b.hi - 1};
  return a.lo >= 0 ? Both(all, {0, a.hi}) : all;
}

/// The factor k with a = k·b, for forms with the same atoms.
std::optional<int64_t> Multiple(const std::vector<LinearForm::Term>& a,
                                const std::vector<LinearForm::Term>& b) {
  if (a.size() != b.size() || a.empty()) return std::nullopt;
  int64_t multiple = 0;
  for (const LinearForm::Term& term : a) {
    const auto same = std::ranges::find_if(
        b, [&term](const LinearForm::Term& other) { return Equal(other.atom, term.atom); });
    if (same == b.end() || term.factor % same->factor != 0) return std::nullopt;
    const int64_t ratio = term.factor / same->factor;
    if (multiple != 0 && ratio != multiple) return std::nullopt;
    multiple = ratio;
  }
  return multiple;
}

bool IsOp(const Expr& e, BinaryOp op) { return e->kind == ExprKind::kBinary && e->binary() == op; }

}  // namespace

Interval IntervalOf(DType dtype) {
  if (IsFloat(dtype) || SizeOf(dtype) == 8) {
    return {dtype == DType::kU64 ? 0 : -Interval::kInfinite, Interval::kInfinite};
  }
  return {MinOf(dtype), MaxOf(dtype)};
}

void LinearForm::Add(const Expr& atom, int64_t factor) {
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!Equal(terms[i].atom, atom)) continue;
    terms[i].factor = Saturate(Wide{terms[i].factor} + factor);
    if (terms[i].factor == 0) terms.erase(terms.begin() + static_cast<ptrdiff_t>(i));
    return;
  }
  if (factor != 0) terms.push_back({atom, factor});
}

void LinearForm::Add(const LinearForm& other, int64_t factor) {
  for (const Term& term : other.terms) Add(term.atom, Saturate(Wide{term.factor} * factor));
  constant = Saturate(Wide{constant} + Wide{other.constant} * factor);
}

LinearForm RangeAnalysis::Linear(const Expr& e) {
  LinearForm form;
  if (const std::optional<int64_t> value = AsInt(e);
      value && !(e->dtype == DType::kU64 && *value < 0)) {
    form.constant = Saturate(*value);
    return form;
  }
  // A widening cast keeps the value; other arithmetic than i64 might wrap and stays whole.
  if (e->kind == ExprKind::kCast && IsInteger(e->dtype) && !IsFloat(e->args[0]->dtype) &&
      IntervalOf(e->dtype).Contains(Of(e->args[0]))) {
    return Linear(e->args[0]);
  }
  if (e->dtype == DType::kI64 && e->kind == ExprKind::kBinary) {
    if (e->binary() == BinaryOp::kAdd || e->binary() == BinaryOp::kSub) {
      form = Linear(e->args[0]);
      form.Add(Linear(e->args[1]), e->binary() == BinaryOp::kAdd ? 1 : -1);
      return form;
    }
    if (e->binary() == BinaryOp::kMul) {
      for (size_t side = 0; side < 2; ++side) {
        const std::optional<int64_t> factor = AsInt(e->args[side]);
        if (!factor) continue;
        form.Add(Linear(e->args[1 - side]), Saturate(*factor));
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
  const LinearForm form = Linear(e);
  const Interval range = OfLinear(form);
  return all.Contains(range) ? range : all;
}

Interval RangeAnalysis::OfLinear(const LinearForm& form) {
  Interval range = {0, 0};
  for (const LinearForm::Term& term : form.terms) {
    Interval atom = OfAtom(term.atom);
    for (const Fact& fact : facts_) {
      if (const std::optional<int64_t> k = Multiple({{term.atom, 1}}, fact.terms)) {
        atom = Both(atom, Times(fact.range, {*k, *k}));
      }
    }
    if (atom.lo > atom.hi) atom.hi = atom.lo;
    range = Sum(range, Times(atom, {term.factor, term.factor}));
  }
  for (const Fact& fact : facts_) {
    if (const std::optional<int64_t> k = Multiple(form.terms, fact.terms)) {
      range = Both(range, Times(fact.range, {*k, *k}));
    }
  }
  // A contradiction means that the place is never reached: anything is true of it.
  if (range.lo > range.hi) range.hi = range.lo;
  return Sum(range, {form.constant, form.constant});
}

Interval RangeAnalysis::OfSum(const Expr& e) {
  const LinearForm form = Linear(e);
  Interval range = OfLinear(form);
  for (const Fact& fact : facts_) {
    LinearForm rest = form;
    LinearForm part;
    for (const LinearForm::Term& term : form.terms) {
      const bool known = std::ranges::any_of(fact.terms, [&term](const LinearForm::Term& other) {
        return Equal(other.atom, term.atom);
      });
      if (!known) continue;
      part.Add(term.atom, term.factor);
      rest.Add(term.atom, -term.factor);
    }
    const std::optional<int64_t> k = Multiple(part.terms, fact.terms);
    if (k) range = Both(range, Sum(OfLinear(rest), Times(fact.range, {*k, *k})));
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
      if (e->unary() == UnaryOp::kNeg) range = Times(Of(e->args[0]), {-1, -1});
      if (e->unary() == UnaryOp::kAbs) {
        const Interval a = Of(e->args[0]);
        range = {a.lo > 0 ? a.lo : 0, std::max(Saturate(-Wide{a.lo}), a.hi)};
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
  return Union(taken, other);
}

Interval RangeAnalysis::OfBinary(const Expr& e) {
  const Interval a = Of(e->args[0]);
  const Interval b = Of(e->args[1]);
  const bool positive = b.lo >= 1;
  switch (e->binary()) {
    case BinaryOp::kAdd: return Sum(a, b);
    case BinaryOp::kSub: return Sum(a, Times(b, {-1, -1}));
    case BinaryOp::kMul: return Times(a, b);
    case BinaryOp::kMin: return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case BinaryOp::kMax: return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    case BinaryOp::kDiv:
      if (positive) return Divide(a, b);
      break;
    case BinaryOp::kMod:
      if (positive) return Remainder(a, b);
      break;
    case BinaryOp::kTruncDiv:
      if (positive && a.lo >= 0) return Divide(a, b);
      break;
    case BinaryOp::kTruncMod:
      if (positive && a.lo >= 0) return Remainder(a, b);
      break;
    case BinaryOp::kAnd:
      if (a.lo >= 0 && b.lo >= 0) return {0, std::min(a.hi, b.hi)};
      break;
    case BinaryOp::kShr:
      if (b.lo == b.hi && b.lo >= 0 && b.lo < 62 && a.lo >= 0) {
        return Divide(a, {int64_t{1} << b.lo, int64_t{1} << b.lo});
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
  LinearForm form = Linear(comparison.args[0]);
  form.Add(Linear(comparison.args[1]), -1);
  // form.terms + form.constant OP 0
  const int64_t edge = Saturate(-Wide{form.constant});
  Interval range;
  switch (op) {
    case BinaryOp::kLt: range.hi = edge - 1; break;
    case BinaryOp::kLe: range.hi = edge; break;
    case BinaryOp::kGt: range.lo = edge + 1; break;
    case BinaryOp::kGe: range.lo = edge; break;
    case BinaryOp::kEq: range = {edge, edge}; break;
    default: return;
  }
  facts_.push_back({std::move(form.terms), range});
}

}  // namespace hone::ir
