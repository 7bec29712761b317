#pragma once

#include "llvm/IR/IRBuilder.h"

#include "codegen/llvm_instructions.h"
#include "codegen/llvm_number.h"
#include "ir/expr.h"

// Elementary functions as inline polynomials, for float and double, scalar or vector. No calls.
// Polynomials are minimax fits (Remez, relative error, coefficients rounded one by one) made for
// this file unless a comment names another source. Largest errors found by
// tests/codegen/vector_math_test.cc, in units in the last place of float:
//   exp 0.9 (0.8 in AVX-512 vectors), log 0.8, sin and cos 1.5, tan 3.2, tanh 4.1, sigmoid 2, erf
//   6 (0.6 in AVX-512 vectors of more than 2^-110), atan 2, all others 0.5 (computed in double)
// and of double: 3.4 (pow: relative error 2^-52 times 1 + |y log x|). Infinities, NaN, zeros with
// their sign, and subnormal arguments and results are handled; sin, cos and tan reduce any argument
// exactly.
namespace hone::codegen {

class VectorMath {
 public:
  /// Both must outlive it.
  VectorMath(llvm::IRBuilder<>* builder, const Instructions& instructions)
      : b_(*builder), instructions_(instructions) {}

  /// The transcendental operators of ir::UnaryOp.
  llvm::Value* Unary(ir::UnaryOp op, llvm::Value* x);
  llvm::Value* Pow(llvm::Value* x, llvm::Value* y);
  /// x - trunc(x / y) * y, exact, with the sign of x.
  llvm::Value* Fmod(llvm::Value* x, llvm::Value* y);

 private:
  /// x = quadrant * pi/2 + rest; the quadrant in the low bits of an integer.
  struct Reduced {
    llvm::Value* quadrant;
    Number rest;
  };

  Number UnaryFloat(ir::UnaryOp op, const Number& x);
  Number UnaryDouble(ir::UnaryOp op, const Number& x);
  /// A float function by way of double.
  Number InDouble(ir::UnaryOp op, const Number& x);
  Number ToDouble(const Number& x);
  Number ToFloat(const Number& x);

  // Both types; llvm_vector_math.cc.
  Number Exp(const Number& x);
  Number Log(const Number& x);
  Number Sigmoid(const Number& x);
  Number Atan(const Number& x);
  Number Tan(const Number& x);
  Number SinCos(const Number& x, int quadrants);
  Number SinOf(const Number& rest);
  Number CosOf(const Number& rest);
  Number ScaleByPowerOfTwo(const Number& x, const Number& exponent);
  Number ScaleByInteger(const Number& x, llvm::Value* biased);

  // llvm_vector_math_float.cc
  Number ExpByTable(const Number& x);
  Number TanhFloat(const Number& x);
  Number ErfFloat(const Number& x);
  Number ErfByTable(const Number& x);

  // llvm_vector_math_double.cc
  Number TanhDouble(const Number& x);
  Number ErfDouble(const Number& x);
  Number AsinDouble(const Number& x);
  Number AcosDouble(const Number& x);
  Number SinhDouble(const Number& x);
  Number CoshDouble(const Number& x);
  Number AsinhDouble(const Number& x);
  Number AcoshDouble(const Number& x);
  Number AtanhDouble(const Number& x);
  Number Expm1Double(const Number& x);
  Number Log1pDouble(const Number& x);
  Number PowDouble(const Number& x, const Number& y);

  // llvm_vector_math_reduce.cc
  Reduced ReduceHalfPi(const Number& x);
  Reduced ReduceSmall(const Number& x);
  Reduced ReduceLarge(const Number& x);
  Number FmodDouble(const Number& x, const Number& y);
  llvm::Value* AnyLane(llvm::Value* condition);
  llvm::Value* ExponentOf(const Number& x);

  llvm::IRBuilder<>& b_;
  const Instructions& instructions_;
};

}  // namespace hone::codegen
