#include "codegen/cuda/llvm_group.h"

#include <string>

#include "fmt/core.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace hone::codegen {
namespace {

/// Assembly that no other may pass, and that a warp's threads execute together.
llvm::CallInst* CallAssembly(llvm::IRBuilder<>& b, llvm::Type* result, const std::string& text,
                             const std::string& constraints,
                             const std::vector<llvm::Value*>& operands) {
  std::vector<llvm::Type*> types;
  for (llvm::Value* operand : operands) types.push_back(operand->getType());
  auto* const type = llvm::FunctionType::get(result, types, /*isVarArg=*/false);
  const std::string all = constraints + (constraints.empty() ? "" : ",") + "~{memory}";
  llvm::CallInst* const call =
      b.CreateCall(type, llvm::InlineAsm::get(type, text, all, /*hasSideEffects=*/true), operands);
  call->setConvergent();
  return call;
}

/// Assembly that changes the sums where they are: a result and an operand of each is one register.
std::vector<llvm::Value*> ChangeSums(llvm::IRBuilder<>& b, const std::string& text,
                                     const std::vector<llvm::Value*>& sums,
                                     const std::vector<llvm::Value*>& others) {
  std::string constraints;
  std::vector<llvm::Type*> types;
  for (llvm::Value* sum : sums) {
    constraints += constraints.empty() ? "=f" : ",=f";
    types.push_back(sum->getType());
  }
  for (size_t k = 0; k < sums.size(); ++k) constraints += fmt::format(",{}", k);
  for (size_t k = 0; k < others.size(); ++k) constraints += ",l";
  std::vector<llvm::Value*> operands = sums;
  operands.insert(operands.end(), others.begin(), others.end());
  llvm::Value* const made =
      CallAssembly(b, llvm::StructType::get(b.getContext(), types), text, constraints, operands);
  std::vector<llvm::Value*> results;
  for (unsigned k = 0; k < sums.size(); ++k) results.push_back(b.CreateExtractValue(made, k));
  return results;
}

/// "Matrix Descriptor Format": the address, both offsets in 16 bytes, and the swizzle of 128 bytes.
/// Eight rows of 128 bytes follow each other; the leading offset leads to the next 128 bytes of
/// rows, where those are rows of what is not summed.
llvm::Value* DescriptorOf(llvm::IRBuilder<>& b, const PhaseFunction::GroupFactor& factor) {
  constexpr uint64_t kUnit = 16, kEightRows = 1024, kSwizzle128 = uint64_t{1} << 62;
  const uint64_t leading = factor.layout.by_term || factor.layout.next_row == 0
                               ? 1
                               : static_cast<uint64_t>(2 * factor.layout.next_row) / kUnit;
  const uint64_t fields = kSwizzle128 | (kEightRows / kUnit) << 32 | leading << 16;
  llvm::Value* const address = b.CreatePtrToInt(factor.begin, b.getInt64Ty());
  llvm::Value* const begin = b.CreateOr(b.CreateLShr(address, b.getInt64(4)), b.getInt64(fields));
  return factor.further == nullptr ? begin : b.CreateAdd(begin, factor.further);
}

}  // namespace

// The fence orders what came before in the sums' registers: it must stand behind the moves that
// bring them there, so it is part of the same assembly.
std::vector<llvm::Value*> BeginGroupProducts(llvm::IRBuilder<>& b, ir::DType dtype, int64_t columns,
                                             const PhaseFunction::GroupFactor& first,
                                             const PhaseFunction::GroupFactor& second,
                                             const std::vector<llvm::Value*>& sums) {
  const size_t count = sums.size();
  std::string registers;
  for (size_t k = 0; k < count; ++k) registers += fmt::format("{}${}", k == 0 ? "" : ", ", k);
  const char* const type = dtype == ir::DType::kF16 ? "f16" : "bf16";
  std::string text =
      "{\n\t.reg .pred added;\n\tsetp.ne.b32 added, 1, 0;\n\twgmma.fence.sync.aligned;\n";
  std::vector<llvm::Value*> descriptors;
  llvm::Value* const descriptor[] = {DescriptorOf(b, first), DescriptorOf(b, second)};
  for (size_t step = 0; step < first.terms.size(); ++step) {
    const size_t operand = 2 * count + descriptors.size();
    text += fmt::format(
        "\twgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, ${}, ${}, added, 1, 1, {}, "
        "{};\n",
        columns, type, type, registers, operand, operand + 1, first.layout.by_term ? 0 : 1,
        second.layout.by_term ? 0 : 1);
    const auto at = [&](llvm::Value* from, int64_t bytes) {
      return b.CreateAdd(from, b.getInt64(static_cast<uint64_t>(bytes) / 16));
    };
    descriptors.push_back(at(descriptor[0], first.terms[step]));
    descriptors.push_back(at(descriptor[1], second.terms[step]));
  }
  text += "\twgmma.commit_group.sync.aligned;\n\t}";
  return ChangeSums(b, text, sums, descriptors);
}

std::vector<llvm::Value*> AwaitGroupProducts(llvm::IRBuilder<>& b, int64_t loops,
                                             const std::vector<llvm::Value*>& sums) {
  return ChangeSums(b, fmt::format("wgmma.wait_group.sync.aligned {};", loops), sums, {});
}

void FenceProxy(llvm::IRBuilder<>& b) {
  CallAssembly(b, b.getVoidTy(), "fence.proxy.async.shared::cta;", "", {});
}

// "Parallel Synchronization and Communication Instructions: mbarrier": one thread arrives in a
// phase, and the bytes that it expects.
void BeginGroupBarriers(llvm::IRBuilder<>& b, llvm::Value* first, int64_t count) {
  constexpr int64_t kBarrierBytes = 8;
  std::string text = "{\n";
  for (int64_t k = 0; k < count; ++k)
    text += fmt::format("\tmbarrier.init.shared::cta.b64 [$0+{}], 1;\n", kBarrierBytes * k);
  text += "\tfence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;\n\t}";
  CallAssembly(b, b.getVoidTy(), text, "l", {b.CreatePtrToInt(first, b.getInt64Ty())});
}

void ExpectGroupBytes(llvm::IRBuilder<>& b, llvm::Value* barrier, int64_t bytes) {
  CallAssembly(b, b.getVoidTy(),
               fmt::format("mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {};", bytes), "l",
               {b.CreatePtrToInt(barrier, b.getInt64Ty())});
}

void AwaitGroupPhase(llvm::IRBuilder<>& b, llvm::Value* barrier, llvm::Value* parity) {
  CallAssembly(b, b.getVoidTy(),
               "{\n\t.reg .pred ended;\nawait_${:uid}:\n"
               "\tmbarrier.try_wait.parity.shared::cta.b64 ended, [$0], $1;\n"
               "\t@!ended bra await_${:uid};\n\t}",
               "l,r",
               {b.CreatePtrToInt(barrier, b.getInt64Ty()), b.CreateTrunc(parity, b.getInt32Ty())});
}

void CopyBoxOf(llvm::IRBuilder<>& b, llvm::Value* map, llvm::Value* to, llvm::Value* row,
               llvm::Value* column, llvm::Value* barrier) {
  CallAssembly(b, b.getVoidTy(),
               "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[$0], [$1, {$2, $3}], [$4];",
               "l,l,r,r,l",
               {b.CreatePtrToInt(to, b.getInt64Ty()), map, b.CreateTrunc(column, b.getInt32Ty()),
                b.CreateTrunc(row, b.getInt32Ty()), b.CreatePtrToInt(barrier, b.getInt64Ty())});
}

llvm::Value* OfFirstLane(llvm::IRBuilder<>& b, llvm::Value* value) {
  constexpr uint32_t kAllLanes = ~0U, kWholeWarp = 31;
  llvm::Value* const own = b.CreateTrunc(value, b.getInt32Ty());
  llvm::Value* const same =
      b.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, llvm::ArrayRef<llvm::Type*>(),
                        {b.getInt32(kAllLanes), own, b.getInt32(0), b.getInt32(kWholeWarp)});
  return b.CreateZExt(same, b.getInt64Ty());
}

}  // namespace hone::codegen
