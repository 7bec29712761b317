#include "codegen/cpu/llvm_x86_instructions.h"

#include "llvm/IR/IntrinsicsX86.h"

namespace hone::codegen {
namespace {

using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

constexpr uint32_t kRoundAsTheModeSays = 4;

unsigned LanesOf(llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector == nullptr ? 1 : vector->getNumElements();
}

Value* AllLanes(llvm::IntegerType* mask) { return llvm::Constant::getAllOnesValue(mask); }

Intrinsic::ID ScaleInstruction(unsigned bits, bool is_double) {
  switch (bits) {
    case 512:
      return is_double ? Intrinsic::x86_avx512_mask_scalef_pd_512
                       : Intrinsic::x86_avx512_mask_scalef_ps_512;
    case 256:
      return is_double ? Intrinsic::x86_avx512_mask_scalef_pd_256
                       : Intrinsic::x86_avx512_mask_scalef_ps_256;
    case 128:
      return is_double ? Intrinsic::x86_avx512_mask_scalef_pd_128
                       : Intrinsic::x86_avx512_mask_scalef_ps_128;
    default: return Intrinsic::not_intrinsic;
  }
}

class Avx512 : public Instructions {
 public:
  explicit Avx512(bool bf16) : bf16_(bf16) {}

  Value* ToBf16(llvm::IRBuilder<>& b, Value* x) const override {
    const unsigned lanes = LanesOf(x->getType());
    if (!bf16_ || (lanes != 8 && lanes != 16)) return nullptr;
    const auto id = lanes == 16 ? Intrinsic::x86_avx512bf16_cvtneps2bf16_512
                                : Intrinsic::x86_avx512bf16_cvtneps2bf16_256;
    return b.CreateBitCast(b.CreateIntrinsic(id, {}, {x}),
                           llvm::FixedVectorType::get(b.getInt16Ty(), lanes));
  }

  // One instruction instead of a comparison and a choice.
  Value* UnlessNan(llvm::IRBuilder<>& b, Value* x, Value* otherwise) const override {
    if (!HasTables(x->getType())) return nullptr;
    constexpr uint32_t kNanToItself = 0x11;  // both kinds of NaN
    return b.CreateIntrinsic(
        Intrinsic::x86_avx512_mask_fixupimm_ps_512, {},
        {otherwise, x, b.CreateVectorSplat(16, b.getInt32(kNanToItself)), b.getInt32(0),
         AllLanes(b.getInt16Ty()), b.getInt32(kRoundAsTheModeSays)});
  }

  bool HasTables(llvm::Type* type) const override {
    return LanesOf(type) == 16 && type->getScalarType()->isFloatTy();
  }
  Value* LookUp(llvm::IRBuilder<>& b, Value* table, Value* index) const override {
    return b.CreateIntrinsic(Intrinsic::x86_avx512_permvar_sf_512, {}, {table, index});
  }
  Value* ToMagnitude(llvm::IRBuilder<>& b, Value* x, Value* magnitude) const override {
    constexpr uint32_t kLeastMagnitudeSignOfFirst = 2;
    return b.CreateIntrinsic(Intrinsic::x86_avx512_mask_range_ps_512, {},
                             {x, magnitude, b.getInt32(kLeastMagnitudeSignOfFirst), x,
                              AllLanes(b.getInt16Ty()), b.getInt32(kRoundAsTheModeSays)});
  }

  bool HasWordTables() const override { return true; }
  Value* LookUpOfTwo(llvm::IRBuilder<>& b, Value* low, Value* index, Value* high) const override {
    return b.CreateIntrinsic(Intrinsic::x86_avx512_vpermi2var_d_512, {}, {low, index, high});
  }

  Value* Expand(llvm::IRBuilder<>& b, Value* pointer, Value* mask) const override {
    auto* type = llvm::FixedVectorType::get(b.getFloatTy(), LanesOf(mask->getType()));
    return b.CreateMaskedExpandLoad(type, pointer, llvm::MaybeAlign(sizeof(float)), mask,
                                    llvm::Constant::getNullValue(type));
  }

  Value* Scale(llvm::IRBuilder<>& b, Value* x, Value* exponent) const override {
    if (!x->getType()->isVectorTy()) return nullptr;
    const auto bits = static_cast<unsigned>(x->getType()->getPrimitiveSizeInBits());
    const bool is_double = x->getType()->getScalarType()->isDoubleTy();
    const Intrinsic::ID id = ScaleInstruction(bits, is_double);
    if (id == Intrinsic::not_intrinsic) return nullptr;
    Value* mask = AllLanes(bits == 512 && !is_double ? b.getInt16Ty() : b.getInt8Ty());
    llvm::SmallVector<Value*, 5> arguments = {x, exponent, x, mask};
    if (bits == 512) arguments.push_back(b.getInt32(kRoundAsTheModeSays));
    return b.CreateIntrinsic(id, {}, arguments);
  }

 private:
  const bool bf16_;
};

}  // namespace

const Instructions& X86Instructions(bool avx512, bool bf16) {
  static const Instructions none;
  static const Avx512 plain(false), with_bf16(true);
  if (!avx512) return none;
  return bf16 ? with_bf16 : plain;
}

}  // namespace hone::codegen
