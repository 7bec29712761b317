#include "ir/index/simplify.h"

#include <algorithm>

#include "ir/index/operator_bounds.h"
#include "ir/index/sum_rules.h"

namespace hone::ir {
namespace {

std::optional<Division<Linear>> AsDivision(const Expr& atom, BinaryOp op, const VarRanges& ranges) {
  if (atom->kind != ExprKind::kBinary || atom->binary() != op) return std::nullopt;
  const std::optional<int64_t> divisor = AsInt(atom->args[1]);
  if (!divisor || *divisor <= 0) return std::nullopt;
  return Division<Linear>{ToLinear(atom->args[0], ranges), *divisor};
}

/// Expressions as atoms of sum_rules.h.
struct ExprSpace {
  using Sum = Linear;
  const VarRanges& ranges;

  Interval Known(const Linear& sum) const { return BoundsOf(sum, ranges); }
  std::optional<Division<Linear>> AsQuotient(const Expr& atom) const {
    return AsDivision(atom, BinaryOp::kDiv, ranges);
  }
  std::optional<Division<Linear>> AsRemainder(const Expr& atom) const {
    return AsDivision(atom, BinaryOp::kMod, ranges);
  }
  static Linear Quotient(const Linear& x, int64_t c) { return Linear::Of(FloorDiv(ToExpr(x), c)); }
  static Linear Remainder(const Linear& x, int64_t c) { return Linear::Of(FloorMod(ToExpr(x), c)); }
};

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
    case ExprKind::kSelect: return Hull(BoundsOf(e->args[1], ranges), BoundsOf(e->args[2], ranges));
    case ExprKind::kBinary:
      switch (e->binary()) {
        case BinaryOp::kDiv:
        case BinaryOp::kMod:
        case BinaryOp::kMin:
        case BinaryOp::kMax:
          return BoundsOfBinary(e->binary(), BoundsOf(e->args[0], ranges),
                                BoundsOf(e->args[1], ranges));
        default: return {};
      }
    default: return {};
  }
}

Linear LinearOfMinMax(const Expr& e, const VarRanges& ranges) {
  const Linear a = ToLinear(e->args[0], ranges), b = ToLinear(e->args[1], ranges);
  const ExprSpace space{ranges};
  const std::optional<Linear> known = ExtremeOf(a, b, e->binary() == BinaryOp::kMax, space);
  return known ? *known : Linear::Of(Binary(e->binary(), ToExpr(a), ToExpr(b)));
}

Linear LinearOfBinary(const Expr& e, const VarRanges& ranges) {
  switch (e->binary()) {
    case BinaryOp::kAdd:
    case BinaryOp::kSub: {
      Linear l = ToLinear(e->args[0], ranges);
      l.Add(ToLinear(e->args[1], ranges), e->binary() == BinaryOp::kAdd ? 1 : -1);
      JoinDivisions(&l, ExprSpace{ranges});
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
        const ExprSpace space{ranges};
        return e->binary() == BinaryOp::kDiv ? DivideSum(a, b.constant, space)
                                             : RemainderOfSum(a, b.constant, space);
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
  JoinDivisions(&d, ExprSpace{ranges});
  const std::optional<bool> known = HoldsThroughout(e->binary(), BoundsOf(d, ranges));
  if (known) return ConstInt(DType::kBool, *known ? 1 : 0);
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
  return BoundsOfSum(linear, [&ranges](const Expr& atom) { return BoundsOfAtom(atom, ranges); });
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
