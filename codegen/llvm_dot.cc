#include <algorithm>

#include "codegen/llvm_emitter.h"

// Short reduce loops over neighbouring bytes as one instruction that multiplies them and adds up.
namespace hone::codegen {

using ir::BinaryOp;
using ir::DType;
using ir::Expr;
using ir::ExprKind;
using ir::StmtKind;
using ir::StmtNode;

namespace {

bool IsByte(DType dtype) { return dtype == DType::kI8 || dtype == DType::kU8; }

/// The byte that a factor widens; null for anything else.
Expr WidenedByte(const Expr& factor) {
  const bool wide = factor->kind == ExprKind::kCast && factor->dtype == DType::kI32;
  return wide && IsByte(factor->args[0]->dtype) ? factor->args[0] : nullptr;
}

/// The loop's only statement, when it is one element += i32(byte) * i32(byte).
const StmtNode* SumOfByteProducts(const StmtNode& loop) {
  const StmtNode* inner = &loop;
  while (inner == &loop || inner->kind == StmtKind::kBlock) {
    if (inner->body.size() != 1) return nullptr;
    inner = inner->body[0].get();
  }
  if (inner->kind != StmtKind::kStore || inner->combiner != ir::Combiner::kSum) return nullptr;
  const Expr& value = inner->values[0];
  const bool product = value->kind == ExprKind::kBinary && value->binary() == BinaryOp::kMul;
  if (!product || WidenedByte(value->args[0]) == nullptr || WidenedByte(value->args[1]) == nullptr)
    return nullptr;
  return inner;
}

}  // namespace

// The bytes that a factor has in all iterations, side by side: a vector of them for every lane, or
// one integer for all lanes. Null: they do not lie so.
llvm::Value* FunctionEmitter::DotWord(const Expr& factor, const StmtNode& node) {
  const Expr load = WidenedByte(factor);
  if (load->kind != ExprKind::kLoad || IsRegister(load->id) || mask_ != nullptr) return nullptr;
  index_.Bind(node.var, Affine(0));
  const Affine first = index_.Decompose(load->args[0]);
  for (int64_t k = 1; k < node.extent; ++k) {
    index_.Bind(node.var, Affine(k));
    if (index_.Decompose(load->args[0]) != first + Affine(k)) return nullptr;
  }
  const auto bytes = static_cast<unsigned>(node.extent);
  llvm::Type* type = builder_.getIntNTy(8 * bytes);
  if (!index_.DependsOnLane(first))
    return builder_.CreateAlignedLoad(type, Pointer(load->id, first), llvm::Align(1));
  const LanePattern pattern = PatternOf(first);
  if (pattern.offsets.empty()) return nullptr;
  for (size_t lane = 0; lane < pattern.offsets.size(); ++lane) {
    if (pattern.offsets[lane] != static_cast<int64_t>(lane * bytes)) return nullptr;
  }
  type = llvm::FixedVectorType::get(type, static_cast<unsigned>(vector_.lanes));
  llvm::Value* pointer = Pointer(load->id, pattern.base);
  llvm::Value* mask = ActiveMask();
  if (mask == nullptr) return builder_.CreateAlignedLoad(type, pointer, llvm::Align(1));
  return builder_.CreateMaskedLoad(type, pointer, llvm::Align(1), mask,
                                   llvm::Constant::getNullValue(type));
}

// Four products of u8 and s8 are one instruction where the device has it; two of any bytes are one
// product of pairs of 16 bits. False: nothing was emitted.
bool FunctionEmitter::EmitDot(const StmtNode& node) {
  if (function_->byte_products() == PhaseFunction::ByteProducts::kNone) return false;
  const StmtNode* store = SumOfByteProducts(node);
  const int lanes = vector_.lanes;
  if (store == nullptr || (lanes != 4 && lanes != 8 && lanes != 16)) return false;
  statement_values_.clear();
  index_.Bind(node.var, Affine(0));
  const Affine index = index_.Decompose(store->index);
  index_.Bind(node.var, Affine(1));
  if (!index_.DependsOnLane(index) || index_.Decompose(store->index) != index) return false;
  Expr left = store->values[0]->args[0];
  Expr right = store->values[0]->args[1];
  const auto is_unsigned = [](const Expr& e) { return ir::IsUnsigned(e->args[0]->dtype); };
  if (!is_unsigned(left)) std::swap(left, right);
  const bool four = node.extent == 4;
  const bool vnni = function_->byte_products() == PhaseFunction::ByteProducts::kVnni;
  if (four && (!vnni || !is_unsigned(left) || is_unsigned(right))) return false;
  llvm::Value* words[] = {DotWord(left, node), nullptr};
  if (words[0] != nullptr) words[1] = DotWord(right, node);
  if (words[1] == nullptr) return false;

  const auto elements = static_cast<unsigned>(lanes * node.extent);
  llvm::Type* bytes = llvm::FixedVectorType::get(builder_.getInt8Ty(), elements);
  llvm::Type* pairs = llvm::FixedVectorType::get(builder_.getInt16Ty(), elements);
  for (llvm::Value*& word : words) {
    if (!word->getType()->isVectorTy())
      word = builder_.CreateVectorSplat(static_cast<unsigned>(lanes), word);
    word = builder_.CreateBitCast(word, bytes);
    if (four) continue;
    const bool zero = is_unsigned(&word == words ? left : right);
    word = zero ? builder_.CreateZExt(word, pairs) : builder_.CreateSExt(word, pairs);
  }
  const int buffer = store->buffers[0];
  llvm::Value* sum = arith_.Broadcast(Load(buffer, index), lanes).llvm;
  sum = function_->AddProducts(sum, words[0], words[1]);
  Store(buffer, index, {sum, DType::kI32, lanes});
  return true;
}

}  // namespace hone::codegen
