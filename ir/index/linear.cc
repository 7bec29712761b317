#include "ir/index/linear.h"

#include <cstdlib>
#include <numeric>

namespace hone::ir {

int Compare(const Expr& a, const Expr& b) {
  if (a == b) return 0;
  auto by = [](auto x, auto y) { return x < y ? -1 : (y < x ? 1 : 0); };
  if (int c = by(static_cast<int>(a->kind), static_cast<int>(b->kind))) return c;
  if (int c = by(static_cast<int>(a->dtype), static_cast<int>(b->dtype))) return c;
  if (int c = by(static_cast<int>(a->op), static_cast<int>(b->op))) return c;
  if (int c = by(a->id, b->id)) return c;
  if (int c = by(a->int_value, b->int_value)) return c;
  if (int c = by(a->float_value, b->float_value)) return c;
  if (int c = by(a->args.size(), b->args.size())) return c;
  for (size_t i = 0; i < a->args.size(); ++i) {
    if (int c = Compare(a->args[i], b->args[i])) return c;
  }
  return 0;
}

std::optional<Linear> Difference(const Linear& a, const Linear& b) {
  int64_t constant = 0;
  if (__builtin_sub_overflow(a.constant, b.constant, &constant)) return std::nullopt;
  return a - b;
}

Expr ToExpr(const Linear& linear) {
  Expr sum;
  for (const auto& t : linear.terms) {
    Expr term = t.coefficient == 1 ? t.atom : t.atom * t.coefficient;
    sum = sum ? sum + term : term;
  }
  if (!sum) return ir::Int(linear.constant);
  return linear.constant ? sum + linear.constant : sum;
}

int64_t KnownFactor(const Linear& linear) {
  int64_t g = std::abs(linear.constant);
  for (const auto& t : linear.terms) g = std::gcd(g, std::abs(t.coefficient));
  return g;
}

}  // namespace hone::ir
