#include "codegen/cuda/llvm_nvptx.h"

#include <algorithm>

#include "fmt/core.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

#include "codegen/cuda/llvm_group.h"
#include "codegen/llvm_target.h"
#include "ir/cuda/cuda_target.h"
#include "ir/launch.h"

namespace hone::codegen {
namespace {

// Address spaces of NVPTX.
constexpr unsigned kGlobal = 1, kShared = 3;

constexpr uint32_t kWarp = 32;
/// CUtensorMap.
constexpr uint64_t kMapBytes = 128, kMapAlignment = 64;

class NvptxFunction : public PhaseFunction {
 public:
  NvptxFunction(const PhaseContext& context, const ir::CudaTarget& card)
      : PhaseFunction(context),
        card_(card),
        launch_(ir::LaunchOf(*context.nest, *context.phase)),
        maps_(ir::MapsOf(*context.phase)),
        b_(*context.builder) {}

  // 16 bytes, the widest load and store.
  int lanes() const override { return 4; }
  bool has_threads() const override { return true; }
  bool wants_alignment() const override { return true; }
  int64_t most_shared_bytes() const override { return card_.block_shared_bytes; }

  llvm::Function* Declare(const std::set<int>&) override {
    int arguments = 0;
    for (const ir::Buffer& buffer : context_.nest->buffers) {
      if (buffer.scope == ir::Scope::kArgument)
        arguments = std::max(arguments, buffer.argument + 1);
    }
    std::vector<llvm::Type*> types(static_cast<size_t>(arguments), b_.getPtrTy(kGlobal));
    types.insert(types.end(), {b_.getInt64Ty(), b_.getPtrTy(kGlobal)});
    first_map_ = static_cast<unsigned>(types.size());
    types.resize(types.size() + maps_.size(), b_.getPtrTy());
    function_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false),
                                       llvm::Function::ExternalLinkage, context_.phase->symbol,
                                       context_.module);
    function_->setCallingConv(llvm::CallingConv::PTX_Kernel);
    function_->setDoesNotThrow();
    function_->addFnAttr(
        "nvvm.reqntid", fmt::format("{},{},{}", launch_.block_x, launch_.block_y, launch_.block_z));
    for (const ir::Buffer& buffer : context_.nest->buffers) {
      if (buffer.scope != ir::Scope::kArgument) continue;
      const auto k = static_cast<unsigned>(buffer.argument);
      function_->addParamAttr(k, llvm::Attribute::NoAlias);
      if (buffer.read_only) function_->addParamAttr(k, llvm::Attribute::ReadOnly);
    }
    for (unsigned k = 0; k < maps_.size(); ++k) {
      llvm::AttrBuilder map(b_.getContext());
      map.addByValAttr(llvm::ArrayType::get(b_.getInt8Ty(), kMapBytes));
      map.addAlignmentAttr(kMapAlignment);
      map.addAttribute("nvvm.grid_constant");
      function_->addParamAttrs(first_map_ + k, map);
    }
    step_ = function_->getArg(static_cast<unsigned>(arguments));
    result_ = function_->getArg(static_cast<unsigned>(arguments) + 1);
    b_.SetInsertPoint(llvm::BasicBlock::Create(b_.getContext(), "entry", function_));
    return function_;
  }

  llvm::Value* Base(int buffer) override {
    const ir::Buffer& of = context_.Of(buffer);
    if (of.scope == ir::Scope::kArgument)
      return function_->getArg(static_cast<unsigned>(of.argument));
    if (of.scope == ir::Scope::kShared) return Shared(of);
    if (scratch_ == nullptr) {
      auto* type = llvm::ArrayType::get(b_.getInt8Ty(),
                                        static_cast<uint64_t>(context_.phase->scratch_bytes));
      scratch_ = b_.CreateAlloca(type);
      scratch_->setAlignment(llvm::Align(64));
    }
    return b_.CreateConstGEP1_64(b_.getInt8Ty(), scratch_,
                                 static_cast<uint64_t>(of.scratch_offset));
  }

  void BeginBody() override {
    auto* body = llvm::BasicBlock::Create(b_.getContext(), "body", function_);
    b_.CreateBr(body);
    b_.SetInsertPoint(body);
  }

  llvm::Value* LaunchedIndex(ir::LoopKind kind) override {
    const auto read = [&](llvm::Intrinsic::ID id) {
      return b_.CreateZExt(b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>(), {}),
                           b_.getInt64Ty());
    };
    switch (kind) {
      case ir::LoopKind::kParallel:
      case ir::LoopKind::kBlockX: return read(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
      case ir::LoopKind::kBlockY: return read(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_y);
      case ir::LoopKind::kBlockZ: return read(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_z);
      case ir::LoopKind::kThreadX: return read(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
      case ir::LoopKind::kThreadY: return read(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y);
      default: return nullptr;
    }
  }

  llvm::Value* Step() override { return step_; }

  bool Barrier() override {
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {}, {b_.getInt32(0)});
    return true;
  }

  llvm::Value* OtherLane(llvm::Value* value, int64_t apart, int64_t lanes) override {
    // The lanes of this thread's group, which are a row of threads.
    llvm::Value* members = b_.getInt32(~0U);
    if (lanes < kWarp) {
      llvm::Value* const row = b_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y,
                                                  llvm::ArrayRef<llvm::Type*>(), {});
      llvm::Value* const first = b_.CreateAnd(
          b_.CreateMul(row, b_.getInt32(static_cast<uint32_t>(lanes))), b_.getInt32(kWarp - 1));
      members = b_.CreateShl(b_.getInt32((1U << lanes) - 1), first);
    }
    const unsigned words = value->getType()->getScalarSizeInBits() / 32;
    auto* const type = llvm::FixedVectorType::get(b_.getInt32Ty(), words);
    llvm::Value* const own = b_.CreateBitCast(value, type);
    llvm::Value* other = llvm::PoisonValue::get(type);
    for (uint64_t word = 0; word < words; ++word) {
      llvm::Value* const moved = b_.CreateIntrinsic(
          llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, llvm::ArrayRef<llvm::Type*>(),
          {members, b_.CreateExtractElement(own, word), b_.getInt32(static_cast<uint32_t>(apart)),
           b_.getInt32(kWarp - 1)});
      other = b_.CreateInsertElement(other, moved, word);
    }
    return b_.CreateBitCast(other, value->getType());
  }

  // Past the first level of cache, where 16 bytes go: what is read once should not stay there.
  bool has_copies() const override { return true; }

  bool CopyAsync(llvm::Value* to, llvm::Value* from, int bytes, llvm::Value* wanted) override {
    using namespace llvm::Intrinsic;  // NOLINT: names as long as the lines
    const ID whole = bytes == 16  ? nvvm_cp_async_cg_shared_global_16
                     : bytes == 8 ? nvvm_cp_async_ca_shared_global_8
                                  : nvvm_cp_async_ca_shared_global_4;
    const ID part = bytes == 16  ? nvvm_cp_async_cg_shared_global_16_s
                    : bytes == 8 ? nvvm_cp_async_ca_shared_global_8_s
                                 : nvvm_cp_async_ca_shared_global_4_s;
    if (wanted == nullptr) {
      b_.CreateIntrinsic(whole, llvm::ArrayRef<llvm::Type*>(), {to, from});
      return true;
    }
    llvm::Value* const read =
        b_.CreateSelect(wanted, b_.getInt32(static_cast<uint32_t>(bytes)), b_.getInt32(0));
    b_.CreateIntrinsic(part, llvm::ArrayRef<llvm::Type*>(), {to, from, read});
    return true;
  }

  void CommitCopies() override {
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, llvm::ArrayRef<llvm::Type*>(),
                       {});
  }

  void AwaitCopies(int64_t groups) override {
    b_.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group, llvm::ArrayRef<llvm::Type*>(),
                       {b_.getInt32(static_cast<uint32_t>(groups))});
  }

  bool has_mma() const override { return card_.tensor_flop_per_second > 0; }

  std::vector<llvm::Value*> FetchMatrices(llvm::Value* row, int count, bool turned) override {
    using namespace llvm::Intrinsic;  // NOLINT: names as long as the lines
    const ID straight = count == 4 ? nvvm_ldmatrix_sync_aligned_m8n8_x4_b16
                                   : nvvm_ldmatrix_sync_aligned_m8n8_x2_b16;
    const ID across = count == 4 ? nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16
                                 : nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16;
    return Elements(b_.CreateIntrinsic(turned ? across : straight, {row->getType()}, {row}), count);
  }

  std::vector<llvm::Value*> MultiplyMatrices(ir::DType first_dtype, ir::DType second_dtype,
                                             const std::vector<llvm::Value*>& first,
                                             const std::vector<llvm::Value*>& second,
                                             const std::vector<llvm::Value*>& sums) override {
    const bool f16 = first_dtype == ir::DType::kF16;
    std::vector<llvm::Value*> arguments;
    for (const auto* words : {&first, &second}) {
      for (llvm::Value* word : *words) {
        auto* const pair = llvm::FixedVectorType::get(b_.getHalfTy(), 2);
        arguments.push_back(f16 ? b_.CreateBitCast(word, pair) : word);
      }
    }
    arguments.insert(arguments.end(), sums.begin(), sums.end());
    return Elements(b_.CreateIntrinsic(ProductOf(first_dtype, second_dtype),
                                       llvm::ArrayRef<llvm::Type*>(), arguments),
                    4);
  }

  // Compute capability 9.0 alone has them.
  bool has_wgmma() const override { return card_.capability == kGroupCapability; }

  llvm::Value* Uniform(llvm::Value* value) override { return OfFirstLane(b_, value); }

  std::vector<llvm::Value*> BeginProducts(ir::DType dtype, int64_t columns,
                                          const GroupFactor& first, const GroupFactor& second,
                                          const std::vector<llvm::Value*>& sums) override {
    return BeginGroupProducts(b_, dtype, columns, first, second, sums);
  }

  std::vector<llvm::Value*> AwaitProducts(int64_t loops,
                                          const std::vector<llvm::Value*>& sums) override {
    return AwaitGroupProducts(b_, loops, sums);
  }

  void ShowToProducts() override { FenceProxy(b_); }

  void BeginBarriers(llvm::Value* first, int64_t count) override {
    BeginGroupBarriers(b_, first, count);
  }
  void ExpectBytes(llvm::Value* barrier, int64_t bytes) override {
    ExpectGroupBytes(b_, barrier, bytes);
  }
  void AwaitPhase(llvm::Value* barrier, llvm::Value* parity) override {
    AwaitGroupPhase(b_, barrier, parity);
  }
  void CopyBox(int map, llvm::Value* to, llvm::Value* row, llvm::Value* column,
               llvm::Value* barrier) override {
    const auto at = std::ranges::find(maps_, map) - maps_.begin();
    CopyBoxOf(b_, function_->getArg(first_map_ + static_cast<unsigned>(at)), to, row, column,
              barrier);
  }

  // Threads hide what a fetch takes.
  void Prefetch(llvm::Value*) override {}

  void Leave(int32_t result) override {
    b_.CreateAlignedStore(b_.getInt32(static_cast<uint32_t>(result)), result_, llvm::Align(4));
    b_.CreateRetVoid();
  }

  void Finish() override { b_.CreateRetVoid(); }

  void Erase() override {
    function_->eraseFromParent();
    for (llvm::GlobalVariable* global : shared_) {
      global->removeDeadConstantUsers();
      global->eraseFromParent();
    }
  }

 private:
  static llvm::Intrinsic::ID ProductOf(ir::DType first, ir::DType second) {
    using namespace llvm::Intrinsic;  // NOLINT: names as long as the lines
    const bool signed_second = second == ir::DType::kI8;
    switch (first) {
      case ir::DType::kF16: return nvvm_mma_m16n8k16_row_col_f32_f32;
      case ir::DType::kBF16: return nvvm_mma_m16n8k16_row_col_bf16;
      case ir::DType::kI8:
        return signed_second ? nvvm_mma_m16n8k32_row_col_s8 : nvvm_mma_m16n8k32_row_col_s8_u8;
      default:
        return signed_second ? nvvm_mma_m16n8k32_row_col_u8_s8 : nvvm_mma_m16n8k32_row_col_u8;
    }
  }

  std::vector<llvm::Value*> Elements(llvm::Value* all, int count) {
    std::vector<llvm::Value*> elements;
    for (int k = 0; k < count; ++k)
      elements.push_back(b_.CreateExtractValue(all, static_cast<unsigned>(k)));
    return elements;
  }

  static llvm::Align AlignOf(int64_t bytes) { return llvm::Align(static_cast<uint64_t>(bytes)); }

  llvm::Value* Shared(const ir::Buffer& of) {
    const int64_t bytes = of.elements * ir::SizeOf(of.dtype);
    const int64_t alignment = ir::SharedAlignmentOf(of);
    if (launch_.shared_bytes == 0) {
      auto* type = llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(bytes));
      return NewShared(type, ".shared", llvm::PoisonValue::get(type), alignment);
    }
    // What the launch gives has no size here; names of what is not the module's stay as they are.
    if (shared_.empty())
      NewShared(llvm::ArrayType::get(b_.getInt8Ty(), 0), "_shared", /*value=*/nullptr, alignment);
    llvm::GlobalVariable* const all = shared_.front();
    all->setAlignment(std::max(all->getAlign().valueOrOne(), AlignOf(alignment)));
    shared_top_ = ir::AlignedTo(shared_top_, alignment);
    llvm::Value* const at =
        b_.CreateConstGEP1_64(b_.getInt8Ty(), all, static_cast<uint64_t>(shared_top_));
    shared_top_ += bytes;
    return at;
  }

  llvm::GlobalVariable* NewShared(llvm::Type* type, const char* name, llvm::Constant* value,
                                  int64_t alignment) {
    const auto linkage =
        value == nullptr ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage;
    auto* global = new llvm::GlobalVariable(*context_.module, type, /*isConstant=*/false, linkage,
                                            value, context_.phase->symbol + name, nullptr,
                                            llvm::GlobalValue::NotThreadLocal, kShared);
    global->setAlignment(AlignOf(alignment));
    shared_.push_back(global);
    return global;
  }

  const ir::CudaTarget& card_;
  const ir::Launch launch_;
  const std::vector<int> maps_;  ///< parameters behind all others
  unsigned first_map_ = 0;
  llvm::IRBuilder<>& b_;
  llvm::Function* function_ = nullptr;
  llvm::AllocaInst* scratch_ = nullptr;
  llvm::Value* step_ = nullptr;
  llvm::Value* result_ = nullptr;
  std::vector<llvm::GlobalVariable*> shared_;
  int64_t shared_top_ = 0;  // of what the launch gives
};

class Nvptx : public Backend {
 public:
  // PTX of version 8.0 loads with every driver of CUDA 12; chips of later kinds need a later one.
  absl::StatusOr<llvm::TargetMachine*> Machine(const ir::Target& target) const override {
    const std::string chip = target.family.substr(target.family.find(':') + 1);
    const std::string version = chip.starts_with("sm_1") ? "+ptx86" : "+ptx80";
    return TargetMachineFor({"nvptx64-nvidia-cuda", chip, version, target.text, 0});
  }

  std::unique_ptr<PhaseFunction> NewFunction(const PhaseContext& context,
                                             const ir::Target& target) const override {
    return std::make_unique<NvptxFunction>(context, target.As<ir::CudaTarget>());
  }
};

}  // namespace

const Backend& NvptxBackend() {
  static const Nvptx backend;
  return backend;
}

}  // namespace hone::codegen
