#pragma once

#include <cstdint>

#include "llvm/IR/IRBuilder.h"

// Arithmetic on LLVM values written as formulas, for codegen/llvm_vector_math*.cc. A number is a
// float or double, or a vector of them; plain doubles become constants of the other operand's type.
namespace hone::codegen {

struct Number {
  llvm::IRBuilder<>* b = nullptr;
  llvm::Value* v = nullptr;

  llvm::Type* type() const { return v->getType(); }
  bool is_double() const { return type()->getScalarType()->isDoubleTy(); }
  Number Of(llvm::Value* value) const { return {b, value}; }
  Number Constant(double value) const { return Of(llvm::ConstantFP::get(type(), value)); }
  /// The integer type of the same width and lanes, and a constant of it.
  llvm::Type* BitsType() const {
    llvm::Type* scalar = is_double() ? b->getInt64Ty() : b->getInt32Ty();
    return type()->isVectorTy() ? type()->getWithNewType(scalar) : scalar;
  }
  llvm::Value* Bits() const { return b->CreateBitCast(v, BitsType()); }
  llvm::Value* BitsConstant(uint64_t value) const {
    const unsigned width = is_double() ? 64 : 32;
    return llvm::ConstantInt::get(BitsType(),
                                  llvm::APInt(width, value, false, /*implicitTrunc=*/true));
  }
  Number FromBits(llvm::Value* bits) const { return Of(b->CreateBitCast(bits, type())); }
  Number Call(llvm::Intrinsic::ID id) const { return Of(b->CreateUnaryIntrinsic(id, v)); }
};

inline Number operator+(const Number& x, const Number& y) {
  return x.Of(x.b->CreateFAdd(x.v, y.v));
}
inline Number operator-(const Number& x, const Number& y) {
  return x.Of(x.b->CreateFSub(x.v, y.v));
}
inline Number operator*(const Number& x, const Number& y) {
  return x.Of(x.b->CreateFMul(x.v, y.v));
}
inline Number operator/(const Number& x, const Number& y) {
  return x.Of(x.b->CreateFDiv(x.v, y.v));
}
inline Number operator+(const Number& x, double y) { return x + x.Constant(y); }
inline Number operator-(const Number& x, double y) { return x - x.Constant(y); }
inline Number operator*(const Number& x, double y) { return x * x.Constant(y); }
inline Number operator+(double x, const Number& y) { return y.Constant(x) + y; }
inline Number operator-(double x, const Number& y) { return y.Constant(x) - y; }
inline Number operator*(double x, const Number& y) { return y.Constant(x) * y; }
inline Number operator/(double x, const Number& y) { return y.Constant(x) / y; }
inline Number operator-(const Number& x) { return x.Of(x.b->CreateFNeg(x.v)); }

inline Number Fma(const Number& x, const Number& y, const Number& z) {
  return x.Of(x.b->CreateIntrinsic(llvm::Intrinsic::fma, {x.type()}, {x.v, y.v, z.v}));
}
inline Number Fma(const Number& x, double y, const Number& z) { return Fma(x, x.Constant(y), z); }
inline Number Fma(const Number& x, const Number& y, double z) { return Fma(x, y, x.Constant(z)); }
inline Number Abs(const Number& x) { return x.Call(llvm::Intrinsic::fabs); }
inline Number Sqrt(const Number& x) { return x.Call(llvm::Intrinsic::sqrt); }
inline Number Floor(const Number& x) { return x.Call(llvm::Intrinsic::floor); }
inline Number Truncated(const Number& x) { return x.Call(llvm::Intrinsic::trunc); }
inline Number RoundEven(const Number& x) { return x.Call(llvm::Intrinsic::roundeven); }
inline Number CopySign(const Number& x, const Number& sign) {
  return x.Of(x.b->CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x.v, sign.v));
}
inline Number Select(llvm::Value* condition, const Number& x, const Number& y) {
  return x.Of(x.b->CreateSelect(condition, x.v, y.v));
}
/// Comparisons are false when either is NaN.
inline llvm::Value* Less(const Number& x, const Number& y) { return x.b->CreateFCmpOLT(x.v, y.v); }
inline llvm::Value* Less(const Number& x, double y) { return Less(x, x.Constant(y)); }
inline llvm::Value* Greater(const Number& x, double y) {
  return x.b->CreateFCmpOGT(x.v, x.Constant(y).v);
}
inline llvm::Value* Equal(const Number& x, const Number& y) { return x.b->CreateFCmpOEQ(x.v, y.v); }
inline llvm::Value* Equal(const Number& x, double y) { return Equal(x, x.Constant(y)); }
/// Limits that let NaN through; one instruction each.
inline Number AtMost(const Number& x, double limit) {
  const Number c = x.Constant(limit);
  return Select(x.b->CreateFCmpOLT(c.v, x.v), c, x);
}
inline Number AtLeast(const Number& x, double limit) {
  const Number c = x.Constant(limit);
  return Select(x.b->CreateFCmpOGT(c.v, x.v), c, x);
}
/// coefficients[0] + coefficients[1] x + ... by Horner's rule.
inline Number Polynomial(const Number& x, llvm::ArrayRef<double> coefficients) {
  Number sum = x.Constant(coefficients.back());
  for (size_t k = coefficients.size() - 1; k-- > 0;) sum = Fma(sum, x, coefficients[k]);
  return sum;
}

}  // namespace hone::codegen
