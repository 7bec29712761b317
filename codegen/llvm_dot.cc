#include <algorithm>

#include "codegen/llvm_emitter.h"

// Short reduce loops over neighbouring bytes, or numbers of bf16, as one instruction that
// multiplies them and adds up.
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

// The numbers that a factor has in all iterations, side by side: a word of them for every lane, or
// one for all lanes. Null: they do not lie so.
llvm::Value* FunctionEmitter::DotWord(const Expr& factor, const StmtNode& node) {
  const Expr load = Widened(factor);
  if (load->kind != ExprKind::kLoad || IsRegister(load->id) || mask_ != nullptr) return nullptr;
  index_.Bind(node.var, Affine(0));
  const Affine first = index_.Decompose(load->args[0]);
  for (int64_t k = 1; k < node.extent; ++k) {
    index_.Bind(node.var, Affine(k));
    if (index_.Decompose(load->args[0]) != first + Affine(k)) return nullptr;
  }
  const int64_t bits = 8 * ir::SizeOf(load->dtype) * node.extent;
  llvm::Type* type = builder_.getIntNTy(static_cast<unsigned>(bits));
  if (!index_.DependsOnLane(first))
    return builder_.CreateAlignedLoad(type, Pointer(load->id, first), llvm::Align(1));
  const LanePattern pattern = PatternOf(first);
  if (pattern.offsets.empty()) return nullptr;
  for (size_t lane = 0; lane < pattern.offsets.size(); ++lane) {
    if (pattern.offsets[lane] != static_cast<int64_t>(lane) * node.extent) return nullptr;
  }
  type = llvm::FixedVectorType::get(type, static_cast<unsigned>(vector_.lanes));
  llvm::Value* pointer = Pointer(load->id, pattern.base);
  llvm::Value* mask = ActiveMask();
  if (mask == nullptr) return builder_.CreateAlignedLoad(type, pointer, llvm::Align(1));
  return builder_.CreateMaskedLoad(type, pointer, llvm::Align(1), mask,
                                   llvm::Constant::getNullValue(type));
}

// The words as the instruction takes them: bf16, four bytes and two of 16 bits as they are, two
// bytes as 16 bits.
llvm::Value* FunctionEmitter::DotOperand(llvm::Value* word, DType dtype, int64_t count) {
  const auto lanes = static_cast<unsigned>(vector_.lanes);
  const auto elements = lanes * static_cast<unsigned>(count);
  const auto of = [&](llvm::Type* type) { return llvm::FixedVectorType::get(type, elements); };
  if (!word->getType()->isVectorTy()) word = builder_.CreateVectorSplat(lanes, word);
  if (dtype == DType::kBF16) return builder_.CreateBitCast(word, of(builder_.getBFloatTy()));
  if (dtype == DType::kI16) return builder_.CreateBitCast(word, of(builder_.getInt16Ty()));
  word = builder_.CreateBitCast(word, of(builder_.getInt8Ty()));
  if (count == 4) return word;
  llvm::Type* pairs = of(builder_.getInt16Ty());
  return ir::IsUnsigned(dtype) ? builder_.CreateZExt(word, pairs)
                               : builder_.CreateSExt(word, pairs);
}

// Two products of bf16 or four of u8 and s8 are one instruction where the device has it; two of any
// bytes are one product of pairs of 16 bits. False: nothing was emitted.
bool FunctionEmitter::EmitDot(const StmtNode& node) {
  const StmtNode* store = SumOfProducts(node);
  const int lanes = vector_.lanes;
  if (store == nullptr || (lanes != 4 && lanes != 8 && lanes != 16)) return false;
  Expr left = store->values[0]->args[0];
  Expr right = store->values[0]->args[1];
  if (!HasInstruction(*function_, node.extent, &left, &right)) return false;
  statement_values_.clear();
  index_.Bind(node.var, Affine(0));
  const Affine index = index_.Decompose(store->index);
  index_.Bind(node.var, Affine(1));
  if (!index_.DependsOnLane(index) || index_.Decompose(store->index) != index) return false;
  llvm::Value* words[] = {DotWord(left, node), nullptr};
  if (words[0] != nullptr) words[1] = DotWord(right, node);
  if (words[1] == nullptr) return false;
  words[0] = DotOperand(words[0], left->args[0]->dtype, node.extent);
  words[1] = DotOperand(words[1], right->args[0]->dtype, node.extent);
  const int buffer = store->buffers[0];
  llvm::Value* sum = arith_.Broadcast(Load(buffer, index), lanes).llvm;
  sum = function_->AddProducts(sum, words[0], words[1]);
  Store(buffer, index, {sum, Of(buffer).dtype, lanes});
  return true;
}

}  // namespace hone::codegen
