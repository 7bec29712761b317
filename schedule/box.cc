#include "schedule/box.h"

#include <algorithm>
#include <vector>

namespace hone::schedule {

using ir::Expr;

namespace {

/// Rows begin at multiples of 16 bytes.
constexpr int64_t kUnit = 8;

}  // namespace

std::optional<Box> FindBox(const Expr& flat, int outer, int inner, const Expr& first,
                           int64_t extent, int64_t elements, const ir::VarRanges& ranges) {
  Box box;
  int64_t along = 0;
  ir::Linear rest;
  const ir::Linear all = ir::ToLinear(flat - first, ranges);
  rest.constant = all.constant;
  for (const ir::Linear::Term& term : all.terms) {
    if (ir::Equal(term.atom, ir::Var(outer))) {
      box.pitch = term.coefficient;
    } else if (ir::Equal(term.atom, ir::Var(inner))) {
      along = term.coefficient;
    } else if (ir::DependsOnVar(term.atom, outer) || ir::DependsOnVar(term.atom, inner)) {
      return std::nullopt;
    } else {
      rest.terms.push_back(term);
    }
  }
  if (along != 1 || box.pitch < 1 || box.pitch % kUnit != 0 || elements % box.pitch != 0 ||
      rest.constant < 0)
    return std::nullopt;
  ir::Linear rows, columns;
  rows.constant = rest.constant / box.pitch;
  columns.constant = rest.constant % box.pitch;
  for (ir::Linear::Term& term : rest.terms) {
    const bool whole = term.coefficient % box.pitch == 0;
    if (whole) term.coefficient /= box.pitch;
    (whole ? rows : columns).terms.push_back(term);
  }
  // What the axis has lies in one row.
  const ir::Interval bounds = ir::BoundsOf(columns, ranges);
  if (bounds.low < 0 || bounds.high + extent > box.pitch) return std::nullopt;
  box.row = ir::Simplify(ir::ToExpr(rows), ranges);
  box.column = ir::Simplify(ir::ToExpr(columns) + first, ranges);
  return box;
}

bool AreBoxes(const ir::Workload& workload, const ir::Stage& stage, int tensor, int outer,
              int inner) {
  const auto factor_of = [&](size_t k) {
    const Expr& e = stage.body[0]->args[k];
    return e->kind == ir::ExprKind::kCast ? e->args[0] : e;
  };
  Expr load = factor_of(0);
  if (load->kind != ir::ExprKind::kLoad || load->id != tensor) load = factor_of(1);
  if (load->kind != ir::ExprKind::kLoad || load->id != tensor || ir::SizeOf(load->dtype) != 2)
    return false;
  if (std::ranges::any_of(load->args, ir::HasLoad)) return false;
  ir::VarRanges ranges;
  for (int axis = 0; axis < stage.num_axes(); ++axis) ranges.extent.push_back(stage.Extent(axis));
  const std::vector<int64_t>& shape = workload.tensors[static_cast<size_t>(tensor)].shape;
  Expr flat = ir::Int(0);
  int64_t elements = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    flat = flat * shape[d] + load->args[d];
    elements *= shape[d];
  }
  return FindBox(ir::Simplify(flat, ranges), outer, inner, ir::Int(0), stage.Extent(inner),
                 elements, ranges)
      .has_value();
}

}  // namespace hone::schedule
