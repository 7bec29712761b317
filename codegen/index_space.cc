#include "codegen/index_space.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/core/check.h"

namespace hone::codegen {
namespace {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::ExprKind;
using ir::UnaryOp;

bool IsOperator(AtomKind kind) { return kind >= AtomKind::kGeZero; }

bool IsOrder(BinaryOp op) {
  return ir::IsComparison(op) && op != BinaryOp::kEq && op != BinaryOp::kNe;
}

}  // namespace

Affine IndexSpace::NewVariable(int depth, ir::Interval range) {
  if (range.IsPoint()) return Affine(range.low);
  Atom atom;
  atom.kind = AtomKind::kVariable;
  atom.depth = depth;
  atom.range = range;
  atoms_.push_back(std::move(atom));
  return Affine::Of(num_atoms() - 1);
}

Affine IndexSpace::Lane(int64_t extent) {
  return Operator(AtomKind::kLane, Affine(extent), {}, {}, {0, extent - 1});
}

Affine IndexSpace::NewOpaque(bool lane, ir::Interval range) {
  Affine result = NewVariable(kDepthHere, range);
  if (result.IsConst()) return result;
  atoms_.back().kind = AtomKind::kOpaque;
  atoms_.back().lane = lane;
  return result;
}

Affine IndexSpace::Operator(AtomKind kind, Affine a, Affine b, Affine c, ir::Interval range) {
  const uint64_t hash =
      HashOf(a) + 3 * HashOf(b) + 7 * HashOf(c) + static_cast<uint64_t>(kind) * 0x51ED2701;
  const auto [first, last] = interned_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Atom& known = atom(it->second);
    if (known.kind == kind && known.a == a && known.b == b && known.c == c)
      return Affine::Of(it->second);
  }
  Atom made;
  made.kind = kind;
  made.lane = kind == AtomKind::kLane || DependsOnLane(a) || DependsOnLane(b) || DependsOnLane(c);
  made.depth = std::max({Depth(a), Depth(b), Depth(c)});
  made.range = range;
  made.a = std::move(a);
  made.b = std::move(b);
  made.c = std::move(c);
  atoms_.push_back(std::move(made));
  interned_.emplace(hash, num_atoms() - 1);
  return Affine::Of(num_atoms() - 1);
}

ir::Interval IndexSpace::Bounds(const Affine& a) const {
  ir::Interval sum{a.constant, a.constant};
  for (const Term& term : a.terms)
    sum = sum + atom(term.atom).range * ir::Interval{term.coefficient, term.coefficient};
  return sum;
}

int IndexSpace::Depth(const Affine& a) const {
  int depth = 0;
  for (const Term& term : a.terms) depth = std::max(depth, atom(term.atom).depth);
  return depth;
}

bool IndexSpace::DependsOnLane(const Affine& a) const {
  return std::any_of(a.terms.begin(), a.terms.end(),
                     [this](const Term& term) { return atom(term.atom).lane; });
}

std::optional<Affine> IndexSpace::AtLane(const Affine& a, int64_t lane) {
  Affine result(a.constant);
  for (const Term& term : a.terms) {
    const Atom known = atom(term.atom);  // a copy: Apply may grow atoms_
    Affine value;
    if (!known.lane) {
      value = Affine::Of(term.atom);
    } else if (known.kind == AtomKind::kLane) {
      value.constant = lane;
    } else if (!IsOperator(known.kind)) {
      return std::nullopt;
    } else {
      const std::optional<Affine> x = AtLane(known.a, lane);
      const std::optional<Affine> y = AtLane(known.b, lane);
      const std::optional<Affine> z = AtLane(known.c, lane);
      if (!x || !y || !z) return std::nullopt;
      value = Apply(known.kind, *x, *y, *z);
    }
    result.Add(value, term.coefficient);
  }
  return result;
}

Affine IndexSpace::Apply(AtomKind kind, const Affine& a, const Affine& b, const Affine& c) {
  switch (kind) {
    case AtomKind::kGeZero: return GeZero(a);
    case AtomKind::kEqZero: return EqZero(a);
    case AtomKind::kMul: return Mul(a, b);
    case AtomKind::kFloorDiv:
    case AtomKind::kFloorMod: return Divide(kind, a, b);
    case AtomKind::kMin:
    case AtomKind::kMax: return MinMax(kind, a, b);
    case AtomKind::kAnd:
    case AtomKind::kOr: return Logic(kind, a, b);
    case AtomKind::kSelect: return Choose(a, b, c);
    default: break;
  }
  HONE_UNREACHABLE();
  return {};
}

void IndexSpace::PushFacts(const Affine& condition, bool truth) {
  // 1 - x is true when x is not.
  if (condition.terms.size() == 1 && condition.constant == 1 &&
      condition.terms[0].coefficient == -1) {
    PushFacts(Affine::Of(condition.terms[0].atom), !truth);
    return;
  }
  if (condition.terms.size() != 1 || condition.constant != 0 || condition.terms[0].coefficient != 1)
    return;
  const Atom known = atom(condition.terms[0].atom);
  if (known.kind == AtomKind::kGeZero) {
    non_negative_.push_back(truth ? known.a : Affine(-1) - known.a);
  } else if (known.kind == AtomKind::kEqZero && truth) {
    non_negative_.push_back(known.a);
    non_negative_.push_back(Scale(known.a, -1));
  } else if ((known.kind == AtomKind::kAnd && truth) || (known.kind == AtomKind::kOr && !truth)) {
    PushFacts(known.a, truth);
    PushFacts(known.b, truth);
  }
}

bool IndexSpace::KnownNonNegative(const Affine& a) const {
  if (Bounds(a).low >= 0) return true;
  return std::any_of(non_negative_.begin(), non_negative_.end(), [&](const Affine& fact) {
    return fact.terms == a.terms && a.constant >= fact.constant;
  });
}

Affine IndexSpace::GeZero(const Affine& a) {
  if (KnownNonNegative(a)) return Affine(1);
  if (KnownNonNegative(Affine(-1) - a)) return Affine(0);
  return Operator(AtomKind::kGeZero, a, {}, {}, {0, 1});
}

Affine IndexSpace::EqZero(const Affine& a) {
  if (a.IsConst()) return Affine(a.constant == 0 ? 1 : 0);
  const Affine negated = Scale(a, -1);
  if (KnownNonNegative(AddScaled(a, Affine(1), -1))) return Affine(0);
  if (KnownNonNegative(AddScaled(negated, Affine(1), -1))) return Affine(0);
  if (KnownNonNegative(a) && KnownNonNegative(negated)) return Affine(1);
  // x == 0 of a 0/1 value is 1 - x: comparisons of bools stay short.
  const ir::Interval range = Bounds(a);
  if (range.low == 0 && range.high == 1) return Affine(1) - a;
  return Operator(AtomKind::kEqZero, a, {}, {}, {0, 1});
}

Affine IndexSpace::Mul(const Affine& a, const Affine& b) {
  if (b.IsConst()) return Scale(a, b.constant);
  if (a.IsConst()) return Scale(b, a.constant);
  return Operator(AtomKind::kMul, a, b, {}, Bounds(a) * Bounds(b));
}

Affine IndexSpace::MinMax(AtomKind kind, const Affine& a, const Affine& b) {
  const bool is_max = kind == AtomKind::kMax;
  if (KnownNonNegative(a - b)) return is_max ? a : b;
  if (KnownNonNegative(b - a)) return is_max ? b : a;
  const ir::Interval x = Bounds(a);
  const ir::Interval y = Bounds(b);
  const ir::Interval range = is_max
                                 ? ir::Interval{std::max(x.low, y.low), std::max(x.high, y.high)}
                                 : ir::Interval{std::min(x.low, y.low), std::min(x.high, y.high)};
  return Operator(kind, a, b, {}, range);
}

Affine IndexSpace::Logic(AtomKind kind, const Affine& a, const Affine& b) {
  const bool is_and = kind == AtomKind::kAnd;
  if (a.IsConst()) return (a.constant != 0) == is_and ? b : a;
  if (b.IsConst()) return (b.constant != 0) == is_and ? a : b;
  if (a == b) return a;
  return Operator(kind, a, b, {}, {0, 1});
}

Affine IndexSpace::Choose(const Affine& condition, const Affine& a, const Affine& b) {
  if (condition.IsConst()) return condition.constant != 0 ? a : b;
  if (a == b) return a;
  return Operator(AtomKind::kSelect, condition, a, b, ir::Hull(Bounds(a), Bounds(b)));
}

Affine IndexSpace::Divide(AtomKind kind, const Affine& a, const Affine& b) {
  const bool is_div = kind == AtomKind::kFloorDiv;
  if (b.IsConst()) {
    if (b.constant == 0) return is_div ? Affine(0) : a;
    if (b.constant > 0) return DivideByConst(kind, a, b.constant);
    if (is_div) return DivideByConst(kind, Scale(a, -1), -b.constant);  // floor(a/-c) = floor(-a/c)
  }
  const ir::Interval y = Bounds(b);
  const ir::Interval x = Bounds(a);
  ir::Interval range;
  if (!is_div && y.low > 0) {
    range = {0, y.high - 1};
  } else if (is_div && y.low > 0) {
    range = {std::min<int64_t>(x.low, 0), std::max<int64_t>(x.high, 0)};
  }
  return Operator(kind, a, b, {}, range);
}

Affine IndexSpace::DivideByConst(AtomKind kind, const Affine& a, int64_t divisor) {
  const bool is_div = kind == AtomKind::kFloorDiv;
  if (divisor == 1) return is_div ? a : Affine(0);
  const auto [whole, rest] = PartByDivisor(a, divisor);
  const ir::Interval range = Bounds(rest);
  const int64_t low = ir::FloorDivInt(range.low, divisor);
  if (low == ir::FloorDivInt(range.high, divisor)) {
    return is_div ? whole + Affine(low) : rest - Affine(low * divisor);
  }
  // A common factor: (g*x + small) / (g*d) = x / d while 0 <= small < g.
  int64_t factor = divisor;
  Affine scaled;
  Affine small(rest.constant);
  for (const Term& term : rest.terms) {
    const ir::Interval spread =
        atom(term.atom).range * ir::Interval{term.coefficient, term.coefficient};
    const bool tiny = spread.low >= 0 && (small.IsConst() || spread.high < divisor / 2) &&
                      std::gcd(factor, term.coefficient) == 1;
    if (!tiny) factor = std::gcd(factor, term.coefficient);
    (tiny ? small : scaled).terms.push_back(term);
  }
  if (factor > 1 && !scaled.terms.empty()) {
    small.constant = ir::FloorModInt(rest.constant, factor);
    scaled.constant = rest.constant - small.constant;
    if (ir::Interval{0, factor - 1}.Contains(Bounds(small))) {
      scaled.constant /= factor;
      for (Term& term : scaled.terms) term.coefficient /= factor;
      const Affine part = DivideByConst(kind, scaled, divisor / factor);
      return is_div ? whole + part : AddScaled(small, part, factor);
    }
  }
  if (!is_div) return Operator(kind, rest, Affine(divisor), {}, {0, divisor - 1});
  return whole +
         Operator(kind, rest, Affine(divisor), {}, {low, ir::FloorDivInt(range.high, divisor)});
}

Affine IndexSpace::FitsOrOpaque(Affine value, const Expr& expr) {
  const ir::Interval limits = ir::IntervalOf(expr->dtype);
  const bool wide = ir::SizeOf(expr->dtype) == 8 && !ir::IsUnsigned(expr->dtype);
  if (wide || limits.Contains(Bounds(value))) return value;
  return source_->Opaque(expr);
}

Affine IndexSpace::DecomposeCast(const Expr& expr) {
  const Expr& inner = expr->args[0];
  if (ir::IsFloat(inner->dtype)) return source_->Opaque(expr);
  Affine value = Decompose(inner);
  if (ir::IsBool(expr->dtype)) return Affine(1) - EqZero(value);
  return FitsOrOpaque(std::move(value), expr);
}

Affine IndexSpace::Decompose(const Expr& expr) {
  switch (expr->kind) {
    case ExprKind::kConst: return Affine(expr->int_value);
    case ExprKind::kVar: return env_[static_cast<size_t>(expr->id)];
    case ExprKind::kLoad: return source_->Opaque(expr);
    case ExprKind::kCast: return DecomposeCast(expr);
    case ExprKind::kSelect: {
      const Affine condition = Decompose(expr->args[0]);
      if (condition.IsConst()) return Decompose(expr->args[condition.constant != 0 ? 1 : 2]);
      if (!source_->IsPure(expr)) return source_->Opaque(expr);
      return Choose(condition, Decompose(expr->args[1]), Decompose(expr->args[2]));
    }
    case ExprKind::kUnary: {
      const UnaryOp op = expr->unary();
      if (op == UnaryOp::kNeg && !ir::IsFloat(expr->args[0]->dtype)) {
        return FitsOrOpaque(Scale(Decompose(expr->args[0]), -1), expr);
      }
      if (op == UnaryOp::kNot && ir::IsBool(expr->dtype)) {
        return Affine(1) - Decompose(expr->args[0]);
      }
      return source_->Opaque(expr);
    }
    case ExprKind::kBinary: return DecomposeBinary(expr);
  }
  HONE_UNREACHABLE();
  return {};
}

bool IndexSpace::DifferenceFits(const Affine& a, const Affine& b) const {
  constexpr int64_t kHalf = ir::Interval::kInfinite / 2;
  constexpr ir::Interval kFits = {-kHalf, kHalf};
  return kFits.Contains(Bounds(a)) && kFits.Contains(Bounds(b));
}

Affine IndexSpace::DecomposeBinary(const Expr& expr) {
  if (ir::IsFloat(expr->args[0]->dtype)) return source_->Opaque(expr);
  const BinaryOp op = expr->binary();
  switch (op) {
    case BinaryOp::kTruncDiv:
    case BinaryOp::kTruncMod:
    case BinaryOp::kPow:
    case BinaryOp::kXor:
    case BinaryOp::kShl:
    case BinaryOp::kShr: return source_->Opaque(expr);
    case BinaryOp::kAnd:
    case BinaryOp::kOr: {
      if (!ir::IsBool(expr->dtype)) return source_->Opaque(expr);
      const AtomKind kind = op == BinaryOp::kAnd ? AtomKind::kAnd : AtomKind::kOr;
      Affine a = Decompose(expr->args[0]);
      // The right side of a decided left side may load what must not be loaded.
      if (a.IsConst() && (a.constant != 0) != (kind == AtomKind::kAnd)) return a;
      return Logic(kind, a, Decompose(expr->args[1]));
    }
    default: break;
  }
  const Affine a = Decompose(expr->args[0]);
  const Affine b = Decompose(expr->args[1]);
  if (IsOrder(op) && !DifferenceFits(a, b)) {
    // Only the sign of one itself is known without a difference.
    const bool sign = b == Affine(0) && (op == BinaryOp::kGe || op == BinaryOp::kLt);
    if (!sign) return source_->Opaque(expr);
  }
  switch (op) {
    case BinaryOp::kAdd: return FitsOrOpaque(a + b, expr);
    case BinaryOp::kSub: return FitsOrOpaque(a - b, expr);
    case BinaryOp::kMul: return FitsOrOpaque(Mul(a, b), expr);
    case BinaryOp::kDiv: return FitsOrOpaque(Divide(AtomKind::kFloorDiv, a, b), expr);
    case BinaryOp::kMod: return FitsOrOpaque(Divide(AtomKind::kFloorMod, a, b), expr);
    case BinaryOp::kMin: return MinMax(AtomKind::kMin, a, b);
    case BinaryOp::kMax: return MinMax(AtomKind::kMax, a, b);
    case BinaryOp::kEq: return EqZero(a - b);
    case BinaryOp::kNe: return Affine(1) - EqZero(a - b);
    case BinaryOp::kLt: return GeZero(b - a - Affine(1));
    case BinaryOp::kLe: return GeZero(b - a);
    case BinaryOp::kGt: return GeZero(a - b - Affine(1));
    case BinaryOp::kGe: return GeZero(a - b);
    default: break;
  }
  HONE_UNREACHABLE();
  return {};
}

}  // namespace hone::codegen
