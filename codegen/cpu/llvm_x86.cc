#include "codegen/cpu/llvm_x86.h"

#include "llvm/IR/IntrinsicsX86.h"

#include "codegen/cpu/llvm_amx.h"
#include "codegen/cpu/llvm_x86_instructions.h"
#include "codegen/llvm_target.h"
#include "ir/cpu/cpu_target.h"

namespace hone::codegen {
namespace {

// Offsets of the fields of ir::HoneCall, an ABI.
constexpr uint64_t kBuffersAt = 0, kScratchAt = 8, kBeginAt = 16, kEndAt = 24, kStepAt = 32;

llvm::Intrinsic::ID BytesInstruction(int lanes) {
  return lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
         : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                      : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
}

llvm::Intrinsic::ID WordsInstruction(int lanes, bool adds) {
  if (adds) {
    return lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpwssd_512
           : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpwssd_256
                        : llvm::Intrinsic::x86_avx512_vpdpwssd_128;
  }
  return lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
         : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                      : llvm::Intrinsic::x86_sse2_pmadd_wd;
}

llvm::Intrinsic::ID Bf16Instruction(int lanes) {
  return lanes == 16  ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512
         : lanes == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                      : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
}

class X86Function : public PhaseFunction {
 public:
  X86Function(const PhaseContext& context, const ir::CpuTarget& target)
      : PhaseFunction(context), target_(target), b_(*context.builder) {}

  int lanes() const override { return target_.lanes; }
  const Instructions& instructions() const override {
    return X86Instructions(target_.isa == ir::Isa::kAvx512, target_.bf16);
  }
  ByteProducts byte_products() const override {
    return target_.vnni ? ByteProducts::kVnni : ByteProducts::kPairs;
  }
  bool has_bf16_products() const override { return target_.bf16; }
  TileUnit* tiles() override { return target_.amx ? &amx_ : nullptr; }
  // vdpbf16ps for bf16; vpdpbusd for bytes; vpdpwssd or vpmaddwd for words, never vpmaddubsw, whose
  // sums saturate.
  llvm::Value* AddProducts(llvm::Value* sums, llvm::Value* left, llvm::Value* right) override {
    const auto lanes =
        static_cast<int>(llvm::cast<llvm::FixedVectorType>(sums->getType())->getNumElements());
    const bool bytes = left->getType()->getScalarSizeInBits() == 8;
    const auto call = [&](llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> operands) {
      return b_.CreateIntrinsic(id, {}, operands);
    };
    if (sums->getType()->getScalarType()->isFloatTy())
      return call(Bf16Instruction(lanes), {sums, left, right});
    if (bytes) return call(BytesInstruction(lanes), {sums, left, right});
    if (target_.vnni) return call(WordsInstruction(lanes, true), {sums, left, right});
    return b_.CreateAdd(sums, call(WordsInstruction(lanes, false), {left, right}));
  }

  llvm::Function* Declare(const std::set<int>& used) override {
    for (const int id : used) {
      if (context_.Of(id).scope == ir::Scope::kArgument) arguments_.push_back(id);
    }
    DeclareFunctions();
    EmitOuter();
    b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", inner_));
    return inner_;
  }

  llvm::Value* Base(int buffer) override {
    const ir::Buffer& of = context_.Of(buffer);
    if (of.scope == ir::Scope::kScratch) return Displaced(scratch_, of.scratch_offset);
    for (size_t k = 0; k < arguments_.size(); ++k) {
      if (arguments_[k] == buffer) return inner_->getArg(static_cast<unsigned>(k));
    }
    return nullptr;
  }

  // An empty part returns at once.
  void BeginBody() override {
    auto* body = llvm::BasicBlock::Create(b_.getContext(), "body", inner_);
    return_block_ = llvm::BasicBlock::Create(b_.getContext(), "return", inner_);
    b_.CreateCondBr(b_.CreateICmpSLT(begin_, end_), body, return_block_);
    b_.SetInsertPoint(return_block_);
    result_ = b_.CreatePHI(b_.getInt32Ty(), 2);
    result_->addIncoming(b_.getInt32(0), &inner_->getEntryBlock());
    b_.CreateRet(result_);
    b_.SetInsertPoint(body);
  }

  Part ParallelPart() override { return {begin_, end_}; }
  llvm::Value* LaunchedIndex(ir::LoopKind) override { return nullptr; }
  llvm::Value* Step() override { return step_; }

  void Prefetch(llvm::Value* pointer) override {
    constexpr uint32_t kRead = 0, kAllLevels = 3, kData = 1;
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {pointer->getType()},
                       {pointer, b_.getInt32(kRead), b_.getInt32(kAllLevels), b_.getInt32(kData)});
  }

  void Leave(int32_t result) override {
    result_->addIncoming(b_.getInt32(static_cast<uint32_t>(result)), b_.GetInsertBlock());
    b_.CreateBr(return_block_);
  }

  void Finish() override { Leave(0); }

  void Erase() override {
    outer_->eraseFromParent();
    inner_->eraseFromParent();
  }

 private:
  llvm::Value* Displaced(llvm::Value* pointer, int64_t bytes) {
    if (bytes == 0) return pointer;
    return b_.CreateGEP(b_.getInt8Ty(), pointer, b_.getInt64(static_cast<uint64_t>(bytes)));
  }

  void DeclareFunctions() {
    const std::string& symbol = context_.phase->symbol;
    llvm::Type* pointer = b_.getPtrTy();
    llvm::Type* i64 = b_.getInt64Ty();
    std::vector<llvm::Type*> types(arguments_.size(), pointer);
    types.insert(types.end(), {pointer, i64, i64, i64});
    inner_ =
        llvm::Function::Create(llvm::FunctionType::get(b_.getInt32Ty(), types, false),
                               llvm::Function::InternalLinkage, symbol + ".body", context_.module);
    outer_ = llvm::Function::Create(llvm::FunctionType::get(b_.getInt32Ty(), {pointer}, false),
                                    llvm::Function::ExternalLinkage, symbol, context_.module);
    for (llvm::Function* function : {inner_, outer_}) {
      function->setDoesNotThrow();
      function->addFnAttr("target-cpu", target_.llvm_cpu);
      function->addFnAttr("target-features", target_.llvm_features);
      function->addFnAttr("prefer-vector-width", std::to_string(32 * target_.lanes));
    }
    unsigned k = 0;
    for (const int id : arguments_) {
      const ir::Buffer& buffer = context_.Of(id);
      inner_->addParamAttr(k, llvm::Attribute::NoAlias);
      if (buffer.read_only) inner_->addParamAttr(k, llvm::Attribute::ReadOnly);
      inner_->getArg(k)->setName(buffer.name);
      ++k;
    }
    inner_->addParamAttr(k, llvm::Attribute::NoAlias);
    scratch_ = inner_->getArg(k);
    begin_ = inner_->getArg(k + 1);
    end_ = inner_->getArg(k + 2);
    step_ = inner_->getArg(k + 3);
  }

  void EmitOuter() {
    b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", outer_));
    llvm::Value* call = outer_->getArg(0);
    const auto field = [&](llvm::Type* type, llvm::Value* base, uint64_t bytes) {
      llvm::Value* at = b_.CreateConstGEP1_64(b_.getInt8Ty(), base, bytes);
      return b_.CreateLoad(type, at);
    };
    llvm::Type* pointer = b_.getPtrTy();
    llvm::Value* buffers = field(pointer, call, kBuffersAt);
    std::vector<llvm::Value*> values;
    for (const int id : arguments_) {
      values.push_back(
          field(pointer, buffers, 8 * static_cast<uint64_t>(context_.Of(id).argument)));
    }
    values.push_back(field(pointer, call, kScratchAt));
    for (const uint64_t at : {kBeginAt, kEndAt, kStepAt}) {
      values.push_back(field(b_.getInt64Ty(), call, at));
    }
    llvm::CallInst* result = b_.CreateCall(inner_, values);
    b_.CreateRet(result);
  }

  const ir::CpuTarget& target_;
  llvm::IRBuilder<>& b_;
  Amx amx_{b_};
  std::vector<int> arguments_;  // ids of the buffers passed in, by parameter of inner_
  llvm::Function* inner_ = nullptr;
  llvm::Function* outer_ = nullptr;
  llvm::Value* scratch_ = nullptr;
  llvm::Value* begin_ = nullptr;
  llvm::Value* end_ = nullptr;
  llvm::Value* step_ = nullptr;
  llvm::BasicBlock* return_block_ = nullptr;
  llvm::PHINode* result_ = nullptr;
};

class X86 : public Backend {
 public:
  absl::StatusOr<llvm::TargetMachine*> Machine(const ir::Target& target) const override {
    constexpr unsigned kIntelSyntax = 1;
    const auto& cpu = target.As<ir::CpuTarget>();
    return TargetMachineFor(
        {"x86_64-unknown-linux-gnu", cpu.llvm_cpu, cpu.llvm_features, target.text, kIntelSyntax});
  }

  std::unique_ptr<PhaseFunction> NewFunction(const PhaseContext& context,
                                             const ir::Target& target) const override {
    return std::make_unique<X86Function>(context, target.As<ir::CpuTarget>());
  }
};

}  // namespace

const Backend& X86Backend() {
  static const X86 backend;
  return backend;
}

}  // namespace hone::codegen
