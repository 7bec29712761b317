#include "graph/group_cost.h"

#include "ir/expr.h"

namespace hone::graph {
namespace {

using ir::Expr;
using ir::ExprKind;

bool HasLoad(const Expr& e) {
  bool found = false;
  ir::Visit(e, [&](const ir::ExprNode& node) { found = found || node.kind == ExprKind::kLoad; });
  return found;
}

// Operators on data at one point; indices, constants, selections and casts are free.
int64_t Operators(const Expr& e) {
  if (e->kind == ExprKind::kLoad || !HasLoad(e)) return 0;
  int64_t count = e->kind == ExprKind::kUnary || e->kind == ExprKind::kBinary ? 1 : 0;
  for (const Expr& arg : e->args) count += Operators(arg);
  return count;
}

// The factor of a product behind casts, or null.
const Expr* Product(const Expr& e) {
  const Expr* inner = &e;
  while ((*inner)->kind == ExprKind::kCast) inner = &(*inner)->args[0];
  const bool product =
      (*inner)->kind == ExprKind::kBinary && (*inner)->binary() == ir::BinaryOp::kMul;
  return product && HasLoad((*inner)->args[0]) && HasLoad((*inner)->args[1]) ? inner : nullptr;
}

}  // namespace

bool IsContraction(const ir::Stage& stage) {
  return stage.combiner == ir::Combiner::kSum && !stage.reduce.empty() &&
         Product(stage.body[0]) != nullptr &&
         !ir::Equal((*Product(stage.body[0]))->args[0], (*Product(stage.body[0]))->args[1]);
}

GroupCost CostOf(const ir::Workload& workload) {
  GroupCost cost;
  for (const ir::Stage& stage : workload.stages) {
    int64_t points = 1;
    for (int axis = 0; axis < stage.num_axes(); ++axis) points *= stage.Extent(axis);
    int64_t operators = stage.reduce.empty() ? 0 : 1;
    for (const Expr& body : stage.body) operators += Operators(body);
    if (IsContraction(stage)) {
      cost.flops += 2 * points;
      operators -= 2;
    }
    cost.other_flops += operators * points;
  }
  for (int id : workload.Inputs()) cost.input_bytes += workload.tensors[id].Bytes();
  for (int id : workload.Constants()) cost.constant_bytes += workload.tensors[id].Bytes();
  for (int id : workload.Outputs()) cost.output_bytes += workload.tensors[id].Bytes();
  return cost;
}

}  // namespace hone::graph
