#include "codegen/index_space.h"

#include <algorithm>
#include <utility>

#include "base/core/check.h"
#include "ir/index/operator_bounds.h"

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

struct IndexSpace::Rules {
  using Sum = Affine;
  IndexSpace& space;

  ir::Interval Known(const Affine& a) const { return space.Known(a); }
  std::optional<ir::Division<Affine>> AsQuotient(int atom) const {
    return AsDivision(atom, AtomKind::kFloorDiv);
  }
  std::optional<ir::Division<Affine>> AsRemainder(int atom) const {
    return AsDivision(atom, AtomKind::kFloorMod);
  }
  Affine Quotient(const Affine& x, int64_t c) const {
    return space.Operator(AtomKind::kFloorDiv, BinaryOp::kDiv, x, Affine(c));
  }
  Affine Remainder(const Affine& x, int64_t c) const {
    return space.Operator(AtomKind::kFloorMod, BinaryOp::kMod, x, Affine(c));
  }

 private:
  std::optional<ir::Division<Affine>> AsDivision(int id, AtomKind kind) const {
    const Atom& atom = space.atom(id);
    if (atom.kind != kind || !atom.b.IsConst() || atom.b.constant <= 0) return std::nullopt;
    return ir::Division<Affine>{atom.a, atom.b.constant};
  }
};

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

Affine IndexSpace::Operator(AtomKind kind, BinaryOp op, const Affine& a, const Affine& b) {
  return Operator(kind, a, b, {}, ir::BoundsOfBinary(op, Bounds(a), Bounds(b)));
}

ir::Interval IndexSpace::Bounds(const Affine& a) const {
  return ir::BoundsOfSum(a, [this](int id) { return atom(id).range; });
}

ir::Interval IndexSpace::Known(const Affine& a) const { return facts_.Sharpen(a, Bounds(a)); }

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
    AssumeNonNegative(truth ? known.a : Affine(-1) - known.a);
  } else if (known.kind == AtomKind::kEqZero && truth) {
    AssumeNonNegative(known.a);
    AssumeNonNegative(Scale(known.a, -1));
  } else if ((known.kind == AtomKind::kAnd && truth) || (known.kind == AtomKind::kOr && !truth)) {
    PushFacts(known.a, truth);
    PushFacts(known.b, truth);
  }
}

void IndexSpace::AssumeNonNegative(const Affine& a) {
  facts_.Add(a.terms, {ir::Saturated(-__int128{a.constant}), ir::Interval::kInfinite});
}

Affine IndexSpace::GeZero(const Affine& a) {
  if (const std::optional<bool> known = ir::HoldsThroughout(BinaryOp::kGe, Known(a)))
    return Affine(*known ? 1 : 0);
  return Operator(AtomKind::kGeZero, a, {}, {}, {0, 1});
}

Affine IndexSpace::EqZero(const Affine& a) {
  if (const std::optional<bool> known = ir::HoldsThroughout(BinaryOp::kEq, Known(a)))
    return Affine(*known ? 1 : 0);
  // x == 0 of a 0/1 value is 1 - x: comparisons of bools stay short.
  const ir::Interval range = Bounds(a);
  if (range.low == 0 && range.high == 1) return Affine(1) - a;
  return Operator(AtomKind::kEqZero, a, {}, {}, {0, 1});
}

Affine IndexSpace::Mul(const Affine& a, const Affine& b) {
  if (b.IsConst()) return Scale(a, b.constant);
  if (a.IsConst()) return Scale(b, a.constant);
  return Operator(AtomKind::kMul, BinaryOp::kMul, a, b);
}

Affine IndexSpace::MinMax(AtomKind kind, const Affine& a, const Affine& b) {
  const bool is_max = kind == AtomKind::kMax;
  const Rules rules{*this};
  if (const std::optional<Affine> known = ir::ExtremeOf(a, b, is_max, rules)) return *known;
  return Operator(kind, is_max ? BinaryOp::kMax : BinaryOp::kMin, a, b);
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
    const Rules rules{*this};
    if (b.constant == 0) return is_div ? Affine(0) : a;
    if (b.constant > 0) {
      return is_div ? ir::DivideSum(a, b.constant, rules)
                    : ir::RemainderOfSum(a, b.constant, rules);
    }
    // floor(a / -c) = floor(-a / c)
    if (is_div) return ir::DivideSum(Scale(a, -1), -b.constant, rules);
  }
  return Operator(kind, is_div ? BinaryOp::kDiv : BinaryOp::kMod, a, b);
}

Affine IndexSpace::Joined(Affine sum) {
  ir::JoinDivisions(&sum, Rules{*this});
  return sum;
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
    case BinaryOp::kAdd: return FitsOrOpaque(Joined(a + b), expr);
    case BinaryOp::kSub: return FitsOrOpaque(Joined(a - b), expr);
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
