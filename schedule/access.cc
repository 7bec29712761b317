#include "schedule/access.h"

#include <algorithm>
#include <numeric>

namespace hone::schedule {
namespace {

using ir::Expr;
using ir::ExprKind;

/// The largest c such that the expression depends on the axis only through floor(axis / c); 0 when
/// it does not depend on it.
int64_t BlockOf(const Expr& e, int axis) {
  if (e->kind == ExprKind::kVar) return e->id == axis ? 1 : 0;
  if (e->kind == ExprKind::kBinary && e->binary() == ir::BinaryOp::kDiv &&
      e->args[0]->kind == ExprKind::kVar && e->args[0]->id == axis) {
    return ir::AsInt(e->args[1]).value_or(1);
  }
  int64_t block = 0;
  for (const Expr& a : e->args) block = std::gcd(block, BlockOf(a, axis));
  return block;
}

/// `guards`: the conditions that `e` stands under.
void CollectAccesses(const ir::Workload& w, const ir::Stage& stage, const Expr& e,
                     std::vector<Expr>& guards, std::vector<Access>* out) {
  if (e->kind == ExprKind::kLoad) {
    Access a;
    a.tensor = e->id;
    a.indices = e->args;
    a.guarded = !guards.empty();
    for (int x = 0; x < stage.num_axes(); ++x) {
      a.guard_moves.push_back(std::ranges::any_of(
          guards, [x](const Expr& guard) { return ir::DependsOnVar(guard, x); }));
    }
    a.stride.assign(stage.num_axes(), 0);
    a.linear.assign(stage.num_axes(), true);
    a.block.assign(stage.num_axes(), 0);
    const auto& shape = w.tensors[e->id].shape;
    const ir::VarRanges ranges = RangesOf(stage);
    int64_t scale = 1;
    for (size_t d = shape.size(); d-- > 0; scale *= shape[d]) {
      for (int x = 0; x < stage.num_axes(); ++x)
        a.block[x] = std::gcd(a.block[x], BlockOf(e->args[d], x));
      ir::Linear l = ir::ToLinear(e->args[d], ranges);
      for (const auto& t : l.terms) {
        for (int x = 0; x < stage.num_axes(); ++x) {
          if (t.atom->kind == ExprKind::kVar ? t.atom->id != x : !ir::DependsOnVar(t.atom, x))
            continue;
          if (t.atom->kind == ExprKind::kVar)
            a.stride[x] += t.coefficient * scale;
          else
            a.linear[x] = false;
        }
      }
    }
    out->push_back(std::move(a));
  }
  for (size_t i = 0; i < e->args.size(); ++i) {
    const bool guarded = e->kind == ExprKind::kSelect && i > 0;
    if (guarded) guards.push_back(e->args[0]);
    CollectAccesses(w, stage, e->args[i], guards, out);
    if (guarded) guards.pop_back();
  }
}

}  // namespace

ir::VarRanges RangesOf(const ir::Stage& stage) {
  ir::VarRanges ranges;
  for (int x = 0; x < stage.num_axes(); ++x) ranges.extent.push_back(stage.Extent(x));
  return ranges;
}

std::vector<Access> AccessesOf(const ir::Workload& workload, const ir::Stage& stage) {
  std::vector<Access> out;
  std::vector<Expr> guards;
  for (const auto& body : stage.body) CollectAccesses(workload, stage, body, guards, &out);
  return out;
}

}  // namespace hone::schedule
