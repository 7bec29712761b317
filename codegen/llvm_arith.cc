#include "codegen/llvm_arith.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/core/check.h"
#include "codegen/llvm_vector_math.h"

namespace hone::codegen {

using ir::BinaryOp;
using ir::Combiner;
using ir::DType;
using ir::UnaryOp;

namespace {

llvm::Type* WithLanes(llvm::Type* scalar, int lanes) {
  if (lanes == 1) return scalar;
  return llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes));
}

/// The value of a float constant or of a splat of one.
std::optional<double> ConstantFloat(const llvm::Value* value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (constant == nullptr) return std::nullopt;
  if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  if (number == nullptr) return std::nullopt;
  if (number->getType()->isFloatTy()) {
    return static_cast<double>(number->getValueAPF().convertToFloat());
  }
  return number->getType()->isDoubleTy() ? std::optional(number->getValueAPF().convertToDouble())
                                         : std::nullopt;
}

}  // namespace

llvm::Type* Arith::TypeOf(DType dtype, int lanes) {
  switch (dtype) {
    case DType::kBool: return WithLanes(b_.getInt1Ty(), lanes);
    case DType::kI8:
    case DType::kU8: return WithLanes(b_.getInt8Ty(), lanes);
    case DType::kI16:
    case DType::kU16: return WithLanes(b_.getInt16Ty(), lanes);
    case DType::kI32:
    case DType::kU32: return WithLanes(b_.getInt32Ty(), lanes);
    case DType::kI64:
    case DType::kU64: return WithLanes(b_.getInt64Ty(), lanes);
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32: return WithLanes(b_.getFloatTy(), lanes);
    case DType::kF64: return WithLanes(b_.getDoubleTy(), lanes);
  }
  HONE_UNREACHABLE();
  return nullptr;
}

llvm::Type* Arith::MemoryType(DType dtype, int lanes) {
  switch (dtype) {
    case DType::kBool: return WithLanes(b_.getInt8Ty(), lanes);
    case DType::kF16:
    case DType::kBF16: return WithLanes(b_.getInt16Ty(), lanes);
    default: return TypeOf(dtype, lanes);
  }
}

Value Arith::FromMemory(llvm::Value* value, DType dtype, int lanes) {
  switch (dtype) {
    case DType::kBool: return {b_.CreateICmpNE(value, SplatInt(value->getType(), 0)), dtype, lanes};
    case DType::kF16: {
      llvm::Value* half = b_.CreateBitCast(value, WithLanes(b_.getHalfTy(), lanes));
      return {b_.CreateFPExt(half, TypeOf(dtype, lanes)), dtype, lanes, value};
    }
    case DType::kBF16: {
      llvm::Type* bits = WithLanes(b_.getInt32Ty(), lanes);
      llvm::Value* high = b_.CreateShl(b_.CreateZExt(value, bits), SplatInt(bits, 16));
      return {b_.CreateBitCast(high, TypeOf(dtype, lanes)), dtype, lanes, value};
    }
    default: return {value, dtype, lanes};
  }
}

llvm::Value* Arith::ToMemory(const Value& value) {
  if (value.memory != nullptr) return value.memory;
  llvm::Type* type = MemoryType(value.dtype, value.lanes);
  switch (value.dtype) {
    case DType::kBool: return b_.CreateZExt(value.llvm, type);
    case DType::kF16:
      return b_.CreateBitCast(b_.CreateFPTrunc(value.llvm, WithLanes(b_.getHalfTy(), value.lanes)),
                              type);
    case DType::kBF16: return ToBF16(value.llvm, value.lanes);
    default: return value.llvm;
  }
}

// The nearest bfloat16 of a float, as 16 bits.
llvm::Value* Arith::ToBF16(llvm::Value* value, int lanes) {
  llvm::Type* narrow = MemoryType(DType::kBF16, lanes);
  if (llvm::Value* at_once = instructions_.ToBf16(b_, value)) return at_once;
  llvm::Type* type = WithLanes(b_.getInt32Ty(), lanes);
  llvm::Value* bits = b_.CreateBitCast(value, type);
  llvm::Value* high = b_.CreateLShr(bits, SplatInt(type, 16));
  llvm::Value* odd = b_.CreateAnd(high, SplatInt(type, 1));
  llvm::Value* rounded = b_.CreateLShr(
      b_.CreateAdd(b_.CreateAdd(bits, SplatInt(type, 0x7fff)), odd), SplatInt(type, 16));
  llvm::Value* nan =
      b_.CreateOr(b_.CreateAnd(high, SplatInt(type, 0x8000)), SplatInt(type, 0x7fc0));
  return b_.CreateTrunc(b_.CreateSelect(b_.CreateFCmpUNO(value, value), nan, rounded), narrow);
}

// A double as the float next to it towards zero, lowest bit set when that is not exact: a second
// rounding, to a narrower format, is then correct.
llvm::Value* Arith::RoundToOddF32(llvm::Value* value, int lanes) {
  llvm::Type* type = WithLanes(b_.getInt32Ty(), lanes);
  llvm::Value* nearest = b_.CreateFPTrunc(value, WithLanes(b_.getFloatTy(), lanes));
  llvm::Value* back = b_.CreateFPExt(nearest, value->getType());
  llvm::Value* larger = b_.CreateFCmpOGT(b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                         b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value));
  llvm::Value* bits = b_.CreateBitCast(nearest, type);
  bits = b_.CreateSub(bits, b_.CreateZExt(larger, type));
  bits = b_.CreateOr(bits, b_.CreateZExt(b_.CreateFCmpUNE(back, value), type));
  return b_.CreateBitCast(bits, nearest->getType());
}

llvm::Value* Arith::Splat(llvm::Type* type, double value) {
  return llvm::ConstantFP::get(type, value);
}

llvm::Value* Arith::SplatInt(llvm::Type* type, int64_t value) {
  return llvm::ConstantInt::getSigned(type, value, /*ImplicitTrunc=*/true);
}

Value Arith::Int(DType dtype, int64_t value) {
  return {SplatInt(TypeOf(dtype, 1), value), dtype, 1};
}

Value Arith::Float(DType dtype, double value) {
  // Rounded here: ConstantFP rejects what the type cannot hold exactly in some paths.
  const double rounded =
      dtype == DType::kF64 ? value : static_cast<double>(static_cast<float>(value));
  Value result = {Splat(TypeOf(dtype, 1), rounded), dtype, 1};
  if (dtype == DType::kF16 || dtype == DType::kBF16) result.memory = ToMemory(result);
  return result;
}

Value Arith::Number(DType dtype, double value) {
  return ir::IsFloat(dtype) ? Float(dtype, value) : Int(dtype, static_cast<int64_t>(value));
}

Value Arith::Constant(const ir::ExprNode& node) {
  return ir::IsFloat(node.dtype) ? Float(node.dtype, node.float_value)
                                 : Int(node.dtype, node.int_value);
}

Value Arith::Broadcast(const Value& value, int lanes) {
  if (value.lanes == lanes) return value;
  HONE_CHECK(value.lanes == 1) << "a vector of " << value.lanes << " lanes among " << lanes;
  const auto splat = [&](llvm::Value* scalar) {
    return b_.CreateVectorSplat(static_cast<unsigned>(lanes), scalar);
  };
  return {splat(value.llvm), value.dtype, lanes,
          value.memory == nullptr ? nullptr : splat(value.memory)};
}

Value Arith::Not(const Value& a) { return {b_.CreateNot(a.llvm), a.dtype, a.lanes}; }

Value Arith::Select(const Value& condition, const Value& a, const Value& b) {
  const int lanes = std::max({condition.lanes, a.lanes, b.lanes});
  const Value x = Broadcast(a, lanes);
  const Value y = Broadcast(b, lanes);
  llvm::Value* memory = nullptr;
  if (x.memory != nullptr && y.memory != nullptr)
    memory = b_.CreateSelect(condition.llvm, x.memory, y.memory);
  return {b_.CreateSelect(condition.llvm, x.llvm, y.llvm), a.dtype, lanes, memory};
}

Value Arith::Fma(const Value& a, const Value& b, const Value& c) {
  const int lanes = std::max({a.lanes, b.lanes, c.lanes});
  std::optional<double> factor = ConstantFloat(a.llvm);
  const Value* other = &b;
  if (!factor) {
    factor = ConstantFloat(b.llvm);
    other = &a;
  }
  if (factor == 0.0) return Broadcast(c, lanes);
  if (factor == 1.0) return Binary(BinaryOp::kAdd, c, Broadcast(*other, lanes));
  if (factor == -1.0) return Binary(BinaryOp::kSub, c, Broadcast(*other, lanes));
  if (ConstantFloat(c.llvm) == 0.0) return Broadcast(Binary(BinaryOp::kMul, a, b), lanes);
  const Value x = Broadcast(a, lanes);
  const Value y = Broadcast(b, lanes);
  const Value z = Broadcast(c, lanes);
  llvm::Value* result =
      b_.CreateIntrinsic(llvm::Intrinsic::fma, {z.llvm->getType()}, {x.llvm, y.llvm, z.llvm});
  return {result, c.dtype, lanes};
}

Value Arith::Binary(BinaryOp op, const Value& a, const Value& b) {
  const int lanes = std::max(a.lanes, b.lanes);
  const Value x = Broadcast(a, lanes);
  const Value y = Broadcast(b, lanes);
  if (ir::IsComparison(op)) return Compare(op, x, y);
  return ir::IsFloat(a.dtype) ? FloatBinary(op, x, y) : IntBinary(op, x, y);
}

Value Arith::Unary(UnaryOp op, const Value& a) {
  return ir::IsFloat(a.dtype) ? FloatUnary(op, a) : IntUnary(op, a);
}

Value Arith::Compare(BinaryOp op, const Value& a, const Value& b) {
  using P = llvm::CmpInst::Predicate;
  constexpr P kFloat[] = {P::FCMP_OEQ, P::FCMP_UNE, P::FCMP_OLT,
                          P::FCMP_OLE, P::FCMP_OGT, P::FCMP_OGE};
  constexpr P kSigned[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_SLT,
                           P::ICMP_SLE, P::ICMP_SGT, P::ICMP_SGE};
  constexpr P kUnsigned[] = {P::ICMP_EQ,  P::ICMP_NE,  P::ICMP_ULT,
                             P::ICMP_ULE, P::ICMP_UGT, P::ICMP_UGE};
  const auto which = static_cast<size_t>(op) - static_cast<size_t>(BinaryOp::kEq);
  llvm::Value* result = nullptr;
  if (ir::IsFloat(a.dtype)) {
    result = b_.CreateFCmp(kFloat[which], a.llvm, b.llvm);
  } else {
    const bool is_unsigned = ir::IsUnsigned(a.dtype) || ir::IsBool(a.dtype);
    result = b_.CreateICmp(is_unsigned ? kUnsigned[which] : kSigned[which], a.llvm, b.llvm);
  }
  return {result, DType::kBool, a.lanes};
}

// x86's max(x, y) gives y when either is NaN, and LLVM selects it for `x > y ? x : y`. So one
// instruction does when x cannot be NaN; otherwise b's NaN is put back (b: of a reduction the new
// value, so that what is carried waits for nothing else).
Value Arith::FloatMinMax(BinaryOp op, const Value& a, const Value& b) {
  const auto pick = [&](llvm::Value* x, llvm::Value* y) {
    llvm::Value* better = op == BinaryOp::kMax ? b_.CreateFCmpOGT(x, y) : b_.CreateFCmpOLT(x, y);
    return b_.CreateSelect(better, x, y);
  };
  const auto safe = [](const std::optional<double>& c) { return c && !std::isnan(*c); };
  llvm::Value* result = nullptr;
  if (safe(ConstantFloat(a.llvm))) {
    result = pick(a.llvm, b.llvm);
  } else if (safe(ConstantFloat(b.llvm))) {
    result = pick(b.llvm, a.llvm);
  } else {
    llvm::Value* picked = pick(b.llvm, a.llvm);
    result = instructions_.UnlessNan(b_, b.llvm, picked);
    if (result == nullptr)
      result = b_.CreateSelect(b_.CreateFCmpUNO(b.llvm, b.llvm), b.llvm, picked);
  }
  return {result, a.dtype, a.lanes};
}

Value Arith::FloatBinary(BinaryOp op, const Value& a, const Value& b) {
  const auto wrap = [&](llvm::Value* v) { return Value{v, a.dtype, a.lanes}; };
  switch (op) {
    case BinaryOp::kAdd:
      if (ConstantFloat(a.llvm) == 0.0) return b;
      if (ConstantFloat(b.llvm) == 0.0) return a;
      return wrap(b_.CreateFAdd(a.llvm, b.llvm));
    case BinaryOp::kSub:
      if (ConstantFloat(b.llvm) == 0.0) return a;
      if (ConstantFloat(a.llvm) == 0.0) return wrap(b_.CreateFNeg(b.llvm));
      return wrap(b_.CreateFSub(a.llvm, b.llvm));
    case BinaryOp::kMul:
      if (ConstantFloat(a.llvm) == 1.0) return b;
      if (ConstantFloat(b.llvm) == 1.0) return a;
      return wrap(b_.CreateFMul(a.llvm, b.llvm));
    case BinaryOp::kDiv: return wrap(b_.CreateFDiv(a.llvm, b.llvm));
    case BinaryOp::kTruncDiv:
      return wrap(b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, b_.CreateFDiv(a.llvm, b.llvm)));
    case BinaryOp::kMod:
    case BinaryOp::kTruncMod: return FloatRemainder(op, a, b);
    case BinaryOp::kMin:
    case BinaryOp::kMax: return FloatMinMax(op, a, b);
    case BinaryOp::kPow: return wrap(VectorMath(&b_, instructions_).Pow(a.llvm, b.llvm));
    default: break;
  }
  HONE_CHECK(false) << ToString(op) << " of " << ToString(a.dtype);
  return a;
}

Value Arith::FloatRemainder(BinaryOp op, const Value& a, const Value& b) {
  llvm::Value* rest = VectorMath(&b_, instructions_).Fmod(a.llvm, b.llvm);
  if (op == BinaryOp::kTruncMod) return {rest, a.dtype, a.lanes};
  llvm::Value* zero = Splat(rest->getType(), 0);
  llvm::Value* differ =
      b_.CreateICmpNE(b_.CreateFCmpOLT(rest, zero), b_.CreateFCmpOLT(b.llvm, zero));
  differ = b_.CreateAnd(differ, b_.CreateFCmpUNE(rest, zero));
  return {b_.CreateSelect(differ, b_.CreateFAdd(rest, b.llvm), rest), a.dtype, a.lanes};
}

Value Arith::FloatUnary(UnaryOp op, const Value& a) {
  using I = llvm::Intrinsic::IndependentIntrinsics;
  const auto wrap = [&](llvm::Value* v) { return Value{v, a.dtype, a.lanes}; };
  const auto intrinsic = [&](I id) { return wrap(b_.CreateUnaryIntrinsic(id, a.llvm)); };
  llvm::Value* x = a.llvm;
  llvm::Type* type = x->getType();
  switch (op) {
    case UnaryOp::kNeg: return wrap(b_.CreateFNeg(x));
    case UnaryOp::kAbs: return intrinsic(I::fabs);
    case UnaryOp::kSqrt: return intrinsic(I::sqrt);
    case UnaryOp::kRsqrt:
      return wrap(b_.CreateFDiv(Splat(type, 1), b_.CreateUnaryIntrinsic(I::sqrt, x)));
    case UnaryOp::kFloor: return intrinsic(I::floor);
    case UnaryOp::kCeil: return intrinsic(I::ceil);
    case UnaryOp::kRound: return intrinsic(I::roundeven);
    case UnaryOp::kTrunc: return intrinsic(I::trunc);
    case UnaryOp::kSign: {
      llvm::Value* zero = Splat(type, 0);
      llvm::Value* negative = b_.CreateSelect(b_.CreateFCmpOLT(x, zero), Splat(type, -1), x);
      return wrap(b_.CreateSelect(b_.CreateFCmpOGT(x, zero), Splat(type, 1), negative));
    }
    case UnaryOp::kIsNan: return {b_.CreateFCmpUNO(x, x), DType::kBool, a.lanes};
    case UnaryOp::kIsInf: {
      llvm::Value* infinity = llvm::ConstantFP::getInfinity(type);
      return {b_.CreateFCmpOEQ(b_.CreateUnaryIntrinsic(I::fabs, x), infinity), DType::kBool,
              a.lanes};
    }
    default: return wrap(VectorMath(&b_, instructions_).Unary(op, x));
  }
}

}  // namespace hone::codegen
