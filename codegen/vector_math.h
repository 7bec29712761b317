#pragma once

#include "llvm/IR/IRBuilder.h"

#include "ir/expr.h"

// Elementary functions as inline polynomials, for float and double, scalar or vector. No calls.
namespace hone::codegen {

class VectorMath {
 public:
  explicit VectorMath(llvm::IRBuilder<>* builder) : b_(*builder) {}

  llvm::Value* Unary(ir::UnaryOp op, llvm::Value* x);
  llvm::Value* Pow(llvm::Value* x, llvm::Value* y);
  /// x - trunc(x / y) * y, exact, sign of x.
  llvm::Value* Fmod(llvm::Value* x, llvm::Value* y);

 private:
  llvm::IRBuilder<>& b_;
};

}  // namespace hone::codegen
