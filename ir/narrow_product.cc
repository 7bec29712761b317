#include "ir/narrow_product.h"

#include "ir/index/simplify.h"

namespace hone::ir {

const StmtNode* OnlyStatement(const StmtNode& around) {
  const StmtNode* inner = &around;
  while (inner == &around || inner->kind == StmtKind::kBlock) {
    if (inner->body.size() != 1) return nullptr;
    inner = inner->body[0].get();
  }
  return inner;
}

const StmtNode* OnlyLoop(const StmtNode& around) {
  const StmtNode* const inner = OnlyStatement(around);
  const bool plain = inner != nullptr && inner->kind == StmtKind::kFor &&
                     (inner->loop == LoopKind::kSerial || inner->loop == LoopKind::kUnrolled ||
                      inner->loop == LoopKind::kVector);
  return plain ? inner : nullptr;
}

Expr NarrowLoad(const Expr& factor) {
  if (factor->kind != ExprKind::kCast) return nullptr;
  const Expr& load = factor->args[0];
  const bool byte = load->dtype == DType::kI8 || load->dtype == DType::kU8;
  const bool half = load->dtype == DType::kF16 || load->dtype == DType::kBF16;
  const bool narrow = factor->dtype == DType::kF32 ? half : factor->dtype == DType::kI32 && byte;
  return narrow && load->kind == ExprKind::kLoad && !HasLoad(load->args[0]) ? load : nullptr;
}

}  // namespace hone::ir
