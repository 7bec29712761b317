#pragma once

#include <cstdint>
#include <vector>

#include "codegen/llvm_phase_function.h"

// What a warpgroup of a GPU of compute capability 9.0 does together: wgmma by inline assembly,
// since LLVM has no intrinsics for it. After the PTX ISA, "Asynchronous Warpgroup Level Matrix
// Multiply-Accumulate Instructions".
namespace hone::codegen {

inline constexpr int kGroupCapability = 90;

/// PhaseFunction says what these do.
std::vector<llvm::Value*> BeginGroupProducts(llvm::IRBuilder<>& builder, ir::DType dtype,
                                             int64_t columns,
                                             const PhaseFunction::GroupFactor& first,
                                             const PhaseFunction::GroupFactor& second,
                                             const std::vector<llvm::Value*>& sums);
std::vector<llvm::Value*> AwaitGroupProducts(llvm::IRBuilder<>& builder, int64_t loops,
                                             const std::vector<llvm::Value*>& sums);
void FenceProxy(llvm::IRBuilder<>& builder);
void BeginGroupBarriers(llvm::IRBuilder<>& builder, llvm::Value* first, int64_t count);
void ExpectGroupBytes(llvm::IRBuilder<>& builder, llvm::Value* barrier, int64_t bytes);
void AwaitGroupPhase(llvm::IRBuilder<>& builder, llvm::Value* barrier, llvm::Value* parity);
/// `map`: the parameter of the kernel.
void CopyBoxOf(llvm::IRBuilder<>& builder, llvm::Value* map, llvm::Value* to, llvm::Value* row,
               llvm::Value* column, llvm::Value* barrier);
/// An i64 below 2^31.
llvm::Value* OfFirstLane(llvm::IRBuilder<>& builder, llvm::Value* value);

}  // namespace hone::codegen
