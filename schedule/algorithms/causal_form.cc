#include "schedule/algorithms/causal_form.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/index/simplify.h"

namespace hone::schedule {

namespace {

using ir::BinaryOp;
using ir::Expr;
using ir::ExprKind;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Far below every score of finite values that a network computes, and what such a score may be
/// multiplied by.
constexpr double kLow = -0x1p100, kLargestFactor = 0x1p20;

/// Walks scores back to the sum of products that they begin with.
class Scores {
 public:
  Scores(const ir::Workload& workload, const AttentionForm& form) : w_(workload), f_(form) {}

  /// What the scores are, through Stages that only give them a name.
  Expr Outermost() const {
    Expr e = f_.scores;
    while (const ir::Stage* map = MapOf(e)) e = map->body[0];
    return e;
  }

  /// Whether it is the sum of products, times constants.
  bool IsScaledProduct(const Expr& e) const {
    if (const ir::Stage* map = MapOf(e)) return IsScaledProduct(map->body[0]);
    if (e->kind == ExprKind::kLoad) return w_.Producer(e->id) == f_.contraction;
    if (e->kind != ExprKind::kBinary) return false;
    const auto is_factor = [](const Expr& c) {
      return c->kind == ExprKind::kConst && std::abs(c->float_value) <= kLargestFactor;
    };
    if (e->binary() == BinaryOp::kMul && is_factor(e->args[0])) return IsScaledProduct(e->args[1]);
    const bool divides = e->binary() == BinaryOp::kDiv && e->args[1]->kind == ExprKind::kConst &&
                         std::abs(e->args[1]->float_value) >= 1 / kLargestFactor;
    const bool scales = e->binary() == BinaryOp::kMul && is_factor(e->args[1]);
    return (divides || scales) && IsScaledProduct(e->args[0]);
  }

 private:
  /// The map of the chain that a load reads, at its own point.
  const ir::Stage* MapOf(const Expr& e) const {
    const int id = e->kind == ExprKind::kLoad ? w_.Producer(e->id) : -1;
    if (id < 0 || std::ranges::find(f_.chain, id) == f_.chain.end()) return nullptr;
    const ir::Stage& stage = w_.stages[static_cast<size_t>(id)];
    return stage.combiner == ir::Combiner::kNone ? &stage : nullptr;
  }

  const ir::Workload& w_;
  const AttentionForm& f_;
};

/// a - b of a condition that says a >= b.
Expr AtLeastZero(const Expr& condition) {
  if (condition->kind != ExprKind::kBinary || condition->args[0]->dtype != ir::DType::kI64)
    return nullptr;
  const Expr &a = condition->args[0], &b = condition->args[1];
  switch (condition->binary()) {
    case BinaryOp::kGe: return a - b;
    case BinaryOp::kGt: return a - b - 1;
    case BinaryOp::kLe: return b - a;
    case BinaryOp::kLt: return b - a - 1;
    default: return nullptr;
  }
}

}  // namespace

std::optional<CausalForm> FindCausal(const ir::Workload& workload, const AttentionForm& form) {
  const Scores scores(workload, form);
  const Expr all = scores.Outermost();
  if (all->kind != ExprKind::kSelect || all->args[2]->kind != ExprKind::kConst) return std::nullopt;
  const double hidden = all->args[2]->float_value;
  const bool vanishes =
      hidden == -kInfinity || (hidden <= kLow && scores.IsScaledProduct(all->args[1]));
  const Expr ahead = AtLeastZero(all->args[0]);
  if (!vanishes || ahead == nullptr || ir::HasLoad(ahead)) return std::nullopt;
  const ir::Linear distance = ir::ToLinear(ahead, {});
  const auto& extents = workload.stages[static_cast<size_t>(form.exponential)].spatial;
  const int key = static_cast<int>(extents.size()) - 1;
  if (distance.terms.size() != 2) return std::nullopt;
  CausalForm causal{-1, distance.constant};
  bool of_key = false;
  for (const ir::Linear::Term& term : distance.terms) {
    if (term.atom->kind != ExprKind::kVar) return std::nullopt;
    if (term.atom->id == key)
      of_key = term.coefficient == -1;
    else if (term.coefficient == 1)
      causal.axis = term.atom->id;
  }
  if (!of_key || causal.axis < 0 || causal.offset < 0 || causal.offset >= form.keys - 1)
    return std::nullopt;
  return causal;
}

double SeenShare(const CausalForm& causal, int64_t rows, int64_t keys) {
  double seen = 0;
  for (int64_t row = 0; row < rows; ++row)
    seen += static_cast<double>(std::min(keys, row + causal.offset + 1));
  return seen / (static_cast<double>(rows) * static_cast<double>(keys));
}

}  // namespace hone::schedule
