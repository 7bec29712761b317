#include "codegen/llvm_emitter.h"
#include "ir/bit_rank.h"

// Values that stand one behind the other, to the lanes whose bits are set: one instruction where
// the machine has it.
namespace hone::codegen {

using ir::DType;

std::optional<Value> FunctionEmitter::LoadExpanded(const ir::Expr& expr) {
  constexpr int kLanes = 16;
  if (vector_.lanes != kLanes || vector_.active != kLanes || guard_ != nullptr) return std::nullopt;
  const std::optional<ir::ExpandedLoad> load = ir::AsExpandedLoad(expr);
  if (!load || IsRegister(load->buffer)) return std::nullopt;
  const LanePattern places = PatternOf(index_.Decompose(load->place));
  const Affine first = index_.Decompose(load->first);
  if (!places.contiguous || index_.DependsOnLane(places.base) || index_.DependsOnLane(first))
    return std::nullopt;
  const Value word = Eval(load->word);
  if (word.lanes != 1) return std::nullopt;
  // Other rows take the same values.
  const LoadKey key{load->buffer, first + places.base, word.llvm, mask_, kLanes};
  const auto known = available_.find(key);
  if (known != available_.end() && known->second.generation == generation_ &&
      known->second.writes == StateOf(load->buffer).writes)
    return known->second.value;
  llvm::Value* all = word.llvm;
  llvm::Value* pointer = Pointer(load->buffer, first);
  // Lanes that are not wanted are loaded as the others, for they have places among the values; but
  // where none is wanted there may be no such word.
  if (mask_ != nullptr) {
    llvm::Value* any = arith_.AnyLane(mask_);
    all = builder_.CreateSelect(any, all, builder_.getInt64(0));
    pointer = builder_.CreateSelect(any, pointer, StateOf(load->buffer).base);
  }
  llvm::Value* shift = MaterialiseScalar(places.base);
  llvm::Value* bits =
      builder_.CreateTrunc(builder_.CreateLShr(all, shift), builder_.getIntNTy(kLanes));
  llvm::Value* mask =
      builder_.CreateBitCast(bits, llvm::FixedVectorType::get(builder_.getInt1Ty(), kLanes));
  if (!places.base.IsConst() || places.base.constant != 0) {
    llvm::Value* below = builder_.CreateSub(builder_.CreateShl(builder_.getInt64(1), shift),
                                            builder_.getInt64(1));
    llvm::Value* rank = builder_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop,
                                                      builder_.CreateAnd(all, below));
    pointer = builder_.CreateGEP(builder_.getFloatTy(), pointer, rank);
  }
  llvm::Value* lanes = function_->instructions().Expand(builder_, pointer, mask);
  if (lanes == nullptr) return std::nullopt;
  const Value value{lanes, DType::kF32, kLanes};
  available_[key] = {value, generation_, StateOf(load->buffer).writes};
  return value;
}

}  // namespace hone::codegen
