#include "codegen/llvm_dot.h"

#include <utility>

namespace hone::codegen {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::ExprKind;
using ir::StmtKind;
using ir::StmtNode;

namespace {

/// What a factor widens without loss to what is summed, i32 of a byte or of 16 bits, f32 of bf16;
/// null for anything else.
Expr Widened(const Expr& factor) {
  if (factor->kind != ExprKind::kCast) return nullptr;
  const DType narrow = factor->args[0]->dtype;
  const bool byte = factor->dtype == DType::kI32 &&
                    (narrow == DType::kI8 || narrow == DType::kU8 || narrow == DType::kI16);
  const bool half = factor->dtype == DType::kF32 && narrow == DType::kBF16;
  return byte || half ? factor->args[0] : nullptr;
}

/// The loop's only statement, when it is one element += wide(narrow) * wide(narrow).
const StmtNode* SumOfProducts(const StmtNode& loop) {
  const StmtNode* inner = &loop;
  while (inner == &loop || inner->kind == StmtKind::kBlock) {
    if (inner->body.size() != 1) return nullptr;
    inner = inner->body[0].get();
  }
  if (inner->kind != StmtKind::kStore || inner->combiner != ir::Combiner::kSum) return nullptr;
  const Expr& value = inner->values[0];
  const bool product = value->kind == ExprKind::kBinary && value->binary() == BinaryOp::kMul;
  if (!product || Widened(value->args[0]) == nullptr || Widened(value->args[1]) == nullptr)
    return nullptr;
  return inner;
}

/// Whether the machine has an instruction for so many products; the unsigned factor goes left.
bool HasInstruction(const PhaseFunction& function, int64_t count, Expr* left, Expr* right) {
  const DType of[] = {(*left)->args[0]->dtype, (*right)->args[0]->dtype};
  if (of[0] == DType::kBF16 || of[1] == DType::kBF16)
    return of[0] == of[1] && count == 2 && function.has_bf16_products();
  if (function.byte_products() == PhaseFunction::ByteProducts::kNone) return false;
  if (!ir::IsUnsigned(of[0])) std::swap(*left, *right);
  const bool bytes = ir::SizeOf(of[0]) == 1 && ir::SizeOf(of[1]) == 1;
  const bool vnni = function.byte_products() == PhaseFunction::ByteProducts::kVnni;
  return count == 2 || (vnni && bytes && of[0] != of[1]);
}

}  // namespace

std::optional<DotProduct> FindDotProduct(const StmtNode& loop, const PhaseFunction& function) {
  const StmtNode* store = SumOfProducts(loop);
  if (store == nullptr) return std::nullopt;
  Expr left = store->values[0]->args[0];
  Expr right = store->values[0]->args[1];
  if (!HasInstruction(function, loop.extent, &left, &right)) return std::nullopt;
  return DotProduct{store, left->args[0], right->args[0]};
}

llvm::Value* DotOperand(llvm::IRBuilder<>& builder, llvm::Value* word, unsigned lanes, DType dtype,
                        int64_t count) {
  const auto elements = lanes * static_cast<unsigned>(count);
  const auto of = [&](llvm::Type* type) { return llvm::FixedVectorType::get(type, elements); };
  if (!word->getType()->isVectorTy()) word = builder.CreateVectorSplat(lanes, word);
  if (dtype == DType::kBF16) return builder.CreateBitCast(word, of(builder.getBFloatTy()));
  if (dtype == DType::kI16) return builder.CreateBitCast(word, of(builder.getInt16Ty()));
  word = builder.CreateBitCast(word, of(builder.getInt8Ty()));
  if (count == 4) return word;
  llvm::Type* pairs = of(builder.getInt16Ty());
  return ir::IsUnsigned(dtype) ? builder.CreateZExt(word, pairs) : builder.CreateSExt(word, pairs);
}

}  // namespace hone::codegen
