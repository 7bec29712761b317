#include "schedule/stage_cost.h"

#include <functional>

namespace hone::schedule {

namespace {

using ir::Expr;
using ir::ExprKind;

int64_t CostOfExpr(const Expr& e) {
  int64_t cost = 0;
  if (e->kind == ExprKind::kLoad) return 0;  // index arithmetic is not counted
  if (e->kind == ExprKind::kUnary) {
    bool cheap = e->unary() == ir::UnaryOp::kNeg || e->unary() == ir::UnaryOp::kAbs ||
                 e->unary() == ir::UnaryOp::kNot;
    cost = cheap ? 1 : 16;
  }
  if (e->kind == ExprKind::kBinary && ir::IsFloat(e->dtype)) {
    cost = e->binary() == ir::BinaryOp::kPow                                        ? 16
           : e->binary() == ir::BinaryOp::kDiv                                      ? 4
           : e->binary() == ir::BinaryOp::kMax || e->binary() == ir::BinaryOp::kMin ? 0
                                                                                    : 1;
  }
  for (const Expr& a : e->args) cost += CostOfExpr(a);
  return cost;
}

void CountNodes(const Expr& e, int64_t most, int64_t* nodes) {
  if (++*nodes > most) return;
  for (const Expr& a : e->args) CountNodes(a, most, nodes);
}

}  // namespace

int64_t CostOf(const ir::Stage& stage) {
  int64_t cost = 0;
  for (const auto& body : stage.body) cost += CostOfExpr(body);
  return cost;
}

int64_t NodesOf(const ir::Stage& stage, int64_t most) {
  int64_t nodes = 0;
  for (const Expr& body : stage.body) CountNodes(body, most, &nodes);
  return nodes;
}

bool Computes(const ir::Stage& stage) {
  bool computes = false;
  const std::function<void(const Expr&)> visit = [&](const Expr& e) {
    if (e->kind == ExprKind::kLoad) return;  // index arithmetic is not counted
    computes |= e->kind == ExprKind::kUnary;
    computes |= e->kind == ExprKind::kBinary && ir::IsFloat(e->dtype);
    computes |= e->kind == ExprKind::kCast && ir::IsFloat(e->dtype);
    for (const Expr& a : e->args) visit(a);
  };
  for (const auto& body : stage.body) visit(body);
  return computes;
}

}  // namespace hone::schedule
