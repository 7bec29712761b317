#pragma once

#include <cstdint>
#include <optional>

#include "llvm/IR/IRBuilder.h"

#include "codegen/llvm_phase_function.h"
#include "ir/expr.h"
#include "ir/stmt.h"

// Short reduce loops over neighbouring bytes, or numbers of bf16, as one instruction that
// multiplies them and adds up.
namespace hone::codegen {

/// Two products of bf16 or four of u8 and s8 are one instruction where the device has it; two of
/// any bytes are one product of pairs of 16 bits.
struct DotProduct {
  const ir::StmtNode* store = nullptr;  ///< the loop's only statement
  ir::Expr left, right;                 ///< what it multiplies, in the order of the instruction
};

/// What the loop is, where `function` has the instruction for it.
std::optional<DotProduct> FindDotProduct(const ir::StmtNode& loop, const PhaseFunction& function);

/// Words of `count` numbers each, one a lane or one for all lanes, as the instruction takes them:
/// bf16, four bytes and two of 16 bits as they are, two bytes as 16 bits.
llvm::Value* DotOperand(llvm::IRBuilder<>& builder, llvm::Value* word, unsigned lanes,
                        ir::DType dtype, int64_t count);

}  // namespace hone::codegen
