#include "ir/index/simplify.h"

#include <algorithm>
#include <numeric>

namespace hone::ir {
namespace {

/// l = c·q + r with every coefficient and the constant of r in [0, c).
void SplitByFactor(const Linear& l, int64_t c, Linear* q, Linear* r) {
  q->constant = FloorDivInt(l.constant, c);
  r->constant = FloorModInt(l.constant, c);
  for (const auto& t : l.terms) {
    int64_t quotient = FloorDivInt(t.coefficient, c);
    int64_t remainder = FloorModInt(t.coefficient, c);
    if (quotient) q->terms.push_back({t.atom, quotient});
    if (remainder) r->terms.push_back({t.atom, remainder});
  }
}

/// Division by a positive constant with all that is divisible taken out.
Linear DivideBy(const Linear& l, int64_t c, const VarRanges& ranges) {
  if (c == 1) return l;
  // (x div a + k) div c with one atom that is itself a division: (x + k·a) div (a·c).
  if (l.terms.size() == 1 && l.terms[0].coefficient == 1 &&
      l.terms[0].atom->kind == ExprKind::kBinary && l.terms[0].atom->binary() == BinaryOp::kDiv) {
    if (auto a = AsInt(l.terms[0].atom->args[1]); a && *a > 0) {
      Linear inner = ToLinear(l.terms[0].atom->args[0], ranges);
      inner.constant += l.constant * *a;
      return DivideBy(inner, *a * c, ranges);
    }
  }
  Linear q, r;
  SplitByFactor(l, c, &q, &r);
  Interval b = BoundsOf(r, ranges);
  if (!IsInfinite(b.low) && !IsInfinite(b.high) &&
      FloorDivInt(b.low, c) == FloorDivInt(b.high, c)) {
    q.constant += FloorDivInt(b.low, c);
    return q;
  }
  // A part that stays below a common factor of the others and c changes nothing: (64·x + y) div 128
  // = x div 2 for y < 64.
  for (const auto& t : r.terms) {
    const int64_t g = std::gcd(c, t.coefficient);
    if (g == 1) continue;
    Linear coarse, fine;
    fine.constant = FloorModInt(r.constant, g);
    coarse.constant = r.constant - fine.constant;
    for (const auto& u : r.terms) (u.coefficient % g == 0 ? coarse : fine).terms.push_back(u);
    Interval f = BoundsOf(fine, ranges);
    if ((fine.terms.empty() && fine.constant == 0) || f.low < 0 || f.high >= g) continue;
    q.Add(DivideBy(coarse, c, ranges), 1);
    return q;
  }
  // A common factor of the remainder's terms and c: (g·y + k) div (g·d) = (y + k div g) div d.
  int64_t g = c;
  for (const auto& t : r.terms) g = std::gcd(g, t.coefficient);
  if (g > 1) {
    Linear reduced = r;
    for (auto& t : reduced.terms) t.coefficient /= g;
    reduced.constant = FloorDivInt(r.constant, g);
    q.Add(DivideBy(reduced, c / g, ranges), 1);
    return q;
  }
  q.Add(FloorDiv(ToExpr(r), c), 1);
  return q;
}

Linear ModuloBy(const Linear& l, int64_t c, const VarRanges& ranges) {
  if (c == 1) return {};
  Linear q, r;
  SplitByFactor(l, c, &q, &r);
  Interval b = BoundsOf(r, ranges);
  if (!IsInfinite(b.low) && !IsInfinite(b.high) &&
      FloorDivInt(b.low, c) == FloorDivInt(b.high, c)) {
    r.constant -= FloorDivInt(b.low, c) * c;
    return r;
  }
  return Linear::Of(FloorMod(ToExpr(r), c));
}

/// k·c·(x div c) + k·(x mod c) → k·x, for every such pair.
void JoinDivMod(Linear* l, const VarRanges& ranges) {
  for (size_t i = 0; i < l->terms.size(); ++i) {
    const Expr mod = l->terms[i].atom;
    if (mod->kind != ExprKind::kBinary || mod->binary() != BinaryOp::kMod) continue;
    auto c = AsInt(mod->args[1]);
    if (!c || *c <= 0) continue;
    int64_t k = l->terms[i].coefficient;
    Linear quotient = DivideBy(ToLinear(mod->args[0], ranges), *c, ranges);
    if (quotient.terms.size() != 1 || quotient.constant != 0 || quotient.terms[0].coefficient != 1)
      continue;
    const Expr div = quotient.terms[0].atom;
    auto it = std::find_if(l->terms.begin(), l->terms.end(),
                           [&](const Linear::Term& t) { return Compare(t.atom, div) == 0; });
    if (it == l->terms.end() || it->coefficient != k * *c) continue;
    Expr x = mod->args[0];
    l->Add(div, -k * *c);
    l->Add(mod, -k);
    l->Add(ToLinear(x, ranges), k);
    i = static_cast<size_t>(-1);
  }
}

Interval BoundsOfAtom(const Expr& e, const VarRanges& ranges) {
  switch (e->kind) {
    case ExprKind::kVar: {
      int64_t n = ranges.ExtentOf(e->id);
      if (n > 0) return {0, n - 1};
      return {};
    }
    case ExprKind::kLoad:
      if (ranges.load_range) return ranges.load_range(*e);
      return {};
    case ExprKind::kCast:
      if (e->dtype == DType::kI64 && IsInteger(e->args[0]->dtype))
        return BoundsOf(e->args[0], ranges);
      if (e->args[0]->dtype == DType::kBool) return {0, 1};
      return {};
    case ExprKind::kSelect: {
      Interval a = BoundsOf(e->args[1], ranges), b = BoundsOf(e->args[2], ranges);
      return {std::min(a.low, b.low), std::max(a.high, b.high)};
    }
    case ExprKind::kBinary: {
      Interval a = BoundsOf(e->args[0], ranges), b = BoundsOf(e->args[1], ranges);
      auto c = AsInt(e->args[1]);
      if (e->binary() == BinaryOp::kDiv && c && *c > 0) {
        return {IsInfinite(a.low) ? -Interval::kInfinite : FloorDivInt(a.low, *c),
                IsInfinite(a.high) ? Interval::kInfinite : FloorDivInt(a.high, *c)};
      }
      if (e->binary() == BinaryOp::kMod && c && *c > 0) return {0, *c - 1};
      if (e->binary() == BinaryOp::kMin) return {std::min(a.low, b.low), std::min(a.high, b.high)};
      if (e->binary() == BinaryOp::kMax) return {std::max(a.low, b.low), std::max(a.high, b.high)};
      return {};
    }
    default: return {};
  }
}

Linear LinearOfMinMax(const Expr& e, const VarRanges& ranges) {
  Linear a = ToLinear(e->args[0], ranges), b = ToLinear(e->args[1], ranges);
  const std::optional<Linear> difference = Difference(a, b);
  bool is_min = e->binary() == BinaryOp::kMin;
  if (a.terms.empty() && b.terms.empty()) return (a.constant < b.constant) == is_min ? a : b;
  if (!difference) return Linear::Of(Binary(e->binary(), ToExpr(a), ToExpr(b)));
  Interval d = BoundsOf(*difference, ranges);
  if (d.high <= 0) return is_min ? a : b;
  if (d.low >= 0) return is_min ? b : a;
  return Linear::Of(Binary(e->binary(), ToExpr(a), ToExpr(b)));
}

Linear LinearOfBinary(const Expr& e, const VarRanges& ranges) {
  switch (e->binary()) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      Linear l = ToLinear(e->args[0], ranges);
      l.Add(ToLinear(e->args[1], ranges), e->binary() == BinaryOp::kAdd ? 1 : -1);
      JoinDivMod(&l, ranges);
      return l;
    }
    case BinaryOp::kMul: {
      Linear a = ToLinear(e->args[0], ranges), b = ToLinear(e->args[1], ranges);
      if (a.terms.empty()) return Scale(b, a.constant);
      if (b.terms.empty()) return Scale(a, b.constant);
      return Linear::Of(ToExpr(a) * ToExpr(b));
    }
    case BinaryOp::kDiv:
    case BinaryOp::kMod: {
      Linear a = ToLinear(e->args[0], ranges), b = ToLinear(e->args[1], ranges);
      if (b.terms.empty() && b.constant > 0) {
        return e->binary() == BinaryOp::kDiv ? DivideBy(a, b.constant, ranges)
                                             : ModuloBy(a, b.constant, ranges);
      }
      return Linear::Of(Binary(e->binary(), ToExpr(a), ToExpr(b)));
    }
    case BinaryOp::kMin:
    case BinaryOp::kMax: return LinearOfMinMax(e, ranges);
    default:
      return Linear::Of(
          Binary(e->binary(), Simplify(e->args[0], ranges), Simplify(e->args[1], ranges)));
  }
}

Expr SimplifyComparison(const Expr& e, const VarRanges& ranges) {
  if (e->args[0]->dtype != DType::kI64) {
    return Binary(e->binary(), Simplify(e->args[0], ranges), Simplify(e->args[1], ranges));
  }
  Linear a = ToLinear(e->args[0], ranges), b = ToLinear(e->args[1], ranges);
  const std::optional<Linear> difference = Difference(a, b);
  const auto as_it_is = [&] { return Binary(e->binary(), ToExpr(a), ToExpr(b)); };
  if (!difference) return as_it_is();
  Linear d = *difference;
  JoinDivMod(&d, ranges);
  Interval v = BoundsOf(d, ranges);
  auto known = [](bool value) { return ConstInt(DType::kBool, value ? 1 : 0); };
  switch (e->binary()) {
    case BinaryOp::kLt:
      if (v.high < 0) return known(true);
      if (v.low >= 0) return known(false);
      break;
    case BinaryOp::kLe:
      if (v.high <= 0) return known(true);
      if (v.low > 0) return known(false);
      break;
    case BinaryOp::kGt:
      if (v.low > 0) return known(true);
      if (v.high <= 0) return known(false);
      break;
    case BinaryOp::kGe:
      if (v.low >= 0) return known(true);
      if (v.high < 0) return known(false);
      break;
    case BinaryOp::kEq:
    case BinaryOp::kNe: {
      bool ne = e->binary() == BinaryOp::kNe;
      if (v.low == 0 && v.high == 0) return known(!ne);
      if (v.low > 0 || v.high < 0) return known(ne);
      break;
    }
    default: break;
  }
  // What may be anything stays where it is: a difference of it may wrap.
  const Interval of_a = BoundsOf(a, ranges), of_b = BoundsOf(b, ranges);
  for (const int64_t end : {of_a.low, of_a.high, of_b.low, of_b.high}) {
    if (IsInfinite(end)) return as_it_is();
  }
  // Constants to the right, so that equal conditions look equal.
  int64_t constant = d.constant;
  d.constant = 0;
  return Binary(e->binary(), ToExpr(d), Int(-constant));
}

Expr SimplifyLogic(const Expr& e, const VarRanges& ranges) {
  Expr a = Simplify(e->args[0], ranges), b = Simplify(e->args[1], ranges);
  auto va = AsInt(a), vb = AsInt(b);
  bool is_and = e->binary() == BinaryOp::kAnd;
  if (va) return (*va != 0) == is_and ? b : a;
  if (vb) return (*vb != 0) == is_and ? a : b;
  if (Equal(a, b)) return a;
  return Binary(e->binary(), a, b);
}

}  // namespace

Linear ToLinear(const Expr& e, const VarRanges& ranges) {
  switch (e->kind) {
    case ExprKind::kConst: return Linear(e->int_value);
    case ExprKind::kVar:
      if (ranges.ExtentOf(e->id) == 1) return {};
      return Linear::Of(e);
    case ExprKind::kBinary: return LinearOfBinary(e, ranges);
    case ExprKind::kUnary:
      if (e->unary() == UnaryOp::kNeg) return Scale(ToLinear(e->args[0], ranges), -1);
      return Linear::Of(Unary(e->unary(), Simplify(e->args[0], ranges)));
    default: {
      Expr s = Simplify(e, ranges);
      if (s->kind == ExprKind::kConst) return Linear(s->int_value);
      return Linear::Of(s);
    }
  }
}

Interval BoundsOf(const Linear& linear, const VarRanges& ranges) {
  __int128 low = linear.constant, high = linear.constant;
  for (const auto& t : linear.terms) {
    Interval b = BoundsOfAtom(t.atom, ranges);
    int64_t at_low = t.coefficient > 0 ? b.low : b.high,
            at_high = t.coefficient > 0 ? b.high : b.low;
    low = IsInfinite(at_low) ? static_cast<__int128>(-Interval::kInfinite) * 4
                             : low + static_cast<__int128>(at_low) * t.coefficient;
    high = IsInfinite(at_high) ? static_cast<__int128>(Interval::kInfinite) * 4
                               : high + static_cast<__int128>(at_high) * t.coefficient;
  }
  return {Saturated(low), Saturated(high)};
}

Interval BoundsOf(const Expr& e, const VarRanges& ranges) {
  if (e->dtype == DType::kI64) return BoundsOf(ToLinear(e, ranges), ranges);
  return BoundsOfAtom(e, ranges);
}

Expr Simplify(const Expr& e, const VarRanges& ranges) {
  switch (e->kind) {
    case ExprKind::kConst: return e;
    case ExprKind::kVar: return ranges.ExtentOf(e->id) == 1 ? Int(0) : e;
    case ExprKind::kLoad: {
      std::vector<Expr> args;
      args.reserve(e->args.size());
      for (const auto& a : e->args) args.push_back(Simplify(a, ranges));
      return Load(e->id, e->dtype, std::move(args));
    }
    case ExprKind::kCast: return Cast(e->dtype, Simplify(e->args[0], ranges));
    case ExprKind::kSelect: {
      Expr c = Simplify(e->args[0], ranges);
      if (auto v = AsInt(c)) return Simplify(e->args[*v ? 1 : 2], ranges);
      return Select(c, Simplify(e->args[1], ranges), Simplify(e->args[2], ranges));
    }
    case ExprKind::kUnary: {
      if (e->dtype == DType::kI64) return ToExpr(ToLinear(e, ranges));
      return Unary(e->unary(), Simplify(e->args[0], ranges));
    }
    case ExprKind::kBinary:
      if (IsComparison(e->binary())) return SimplifyComparison(e, ranges);
      if (e->dtype == DType::kBool &&
          (e->binary() == BinaryOp::kAnd || e->binary() == BinaryOp::kOr)) {
        return SimplifyLogic(e, ranges);
      }
      if (e->dtype == DType::kI64) return ToExpr(ToLinear(e, ranges));
      return Binary(e->binary(), Simplify(e->args[0], ranges), Simplify(e->args[1], ranges));
  }
  return e;
}

std::optional<bool> Decide(const Expr& condition, const VarRanges& ranges) {
  Expr s = Simplify(condition, ranges);
  if (auto v = AsInt(s)) return *v != 0;
  return std::nullopt;
}

void SplitConjunction(const Expr& condition, std::vector<Expr>* conjuncts) {
  if (condition->kind == ExprKind::kBinary && condition->binary() == BinaryOp::kAnd &&
      condition->dtype == DType::kBool) {
    SplitConjunction(condition->args[0], conjuncts);
    SplitConjunction(condition->args[1], conjuncts);
  } else {
    conjuncts->push_back(condition);
  }
}

bool DependsOnVar(const Expr& e, int var) {
  if (e->kind == ExprKind::kVar) return e->id == var;
  for (const auto& a : e->args) {
    if (DependsOnVar(a, var)) return true;
  }
  return false;
}

bool HasLoad(const Expr& e) {
  return e->kind == ExprKind::kLoad || std::any_of(e->args.begin(), e->args.end(), HasLoad);
}

}  // namespace hone::ir
