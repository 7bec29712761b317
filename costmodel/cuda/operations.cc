#include "costmodel/cuda/operations.h"

namespace hone::costmodel {

double Operations(const ir::Expr& e) {
  if (e->kind == ir::ExprKind::kLoad) return 0;
  double count = 0;
  if (e->kind == ir::ExprKind::kUnary) {
    const ir::UnaryOp op = e->unary();
    const bool cheap =
        op == ir::UnaryOp::kNeg || op == ir::UnaryOp::kAbs || op == ir::UnaryOp::kNot;
    count = cheap ? 1 : 16;
  } else if (e->kind == ir::ExprKind::kBinary) {
    const ir::BinaryOp op = e->binary();
    count = op == ir::BinaryOp::kPow ? 40 : op == ir::BinaryOp::kDiv ? 8 : 1;
  }
  for (const ir::Expr& arg : e->args) count += Operations(arg);
  return count;
}

}  // namespace hone::costmodel
