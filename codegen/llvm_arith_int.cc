#include <cmath>
#include <limits>
#include <utility>

#include "base/core/check.h"
#include "codegen/llvm_arith.h"

// Integer arithmetic, casts, and the combiners of reductions.
namespace hone::codegen {

using ir::BinaryOp;
using ir::Combiner;
using ir::DType;
using ir::UnaryOp;

Value Arith::IntUnary(UnaryOp op, const Value& a) {
  llvm::Type* type = a.llvm->getType();
  llvm::Value* zero = SplatInt(type, 0);
  const auto wrap = [&](llvm::Value* v) { return Value{v, a.dtype, a.lanes}; };
  switch (op) {
    case UnaryOp::kNeg: return wrap(b_.CreateNeg(a.llvm));
    case UnaryOp::kNot: return wrap(b_.CreateNot(a.llvm));
    case UnaryOp::kAbs:
      if (!ir::IsInteger(a.dtype) || ir::IsUnsigned(a.dtype)) return a;
      return wrap(b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a.llvm, b_.getFalse()));
    case UnaryOp::kSign: {
      llvm::Value* positive = b_.CreateZExt(b_.CreateICmpNE(a.llvm, zero), type);
      if (!ir::IsInteger(a.dtype) || ir::IsUnsigned(a.dtype)) return wrap(positive);
      return wrap(b_.CreateSelect(b_.CreateICmpSLT(a.llvm, zero), SplatInt(type, -1), positive));
    }
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kRound:
    case UnaryOp::kTrunc: return a;
    case UnaryOp::kIsNan:
    case UnaryOp::kIsInf: return Broadcast(Int(DType::kBool, 0), a.lanes);
    default: break;
  }
  HONE_CHECK(false) << ToString(op) << " of " << ToString(a.dtype);
  return a;
}

Value Arith::IntBinary(BinaryOp op, const Value& a, const Value& b) {
  const auto wrap = [&](llvm::Value* v) { return Value{v, a.dtype, a.lanes}; };
  const bool is_unsigned = ir::IsUnsigned(a.dtype) || ir::IsBool(a.dtype);
  switch (op) {
    case BinaryOp::kAdd:
      return wrap(ir::IsBool(a.dtype) ? b_.CreateOr(a.llvm, b.llvm) : b_.CreateAdd(a.llvm, b.llvm));
    case BinaryOp::kSub: return wrap(b_.CreateSub(a.llvm, b.llvm));
    case BinaryOp::kMul: return wrap(b_.CreateMul(a.llvm, b.llvm));
    case BinaryOp::kDiv:
    case BinaryOp::kMod:
    case BinaryOp::kTruncDiv:
    case BinaryOp::kTruncMod: return IntDivide(op, a, b);
    case BinaryOp::kMin:
      return wrap(b_.CreateBinaryIntrinsic(
          is_unsigned ? llvm::Intrinsic::umin : llvm::Intrinsic::smin, a.llvm, b.llvm));
    case BinaryOp::kMax:
      return wrap(b_.CreateBinaryIntrinsic(
          is_unsigned ? llvm::Intrinsic::umax : llvm::Intrinsic::smax, a.llvm, b.llvm));
    case BinaryOp::kPow: return IntPower(a, b);
    case BinaryOp::kAnd: return wrap(b_.CreateAnd(a.llvm, b.llvm));
    case BinaryOp::kOr: return wrap(b_.CreateOr(a.llvm, b.llvm));
    case BinaryOp::kXor: return wrap(b_.CreateXor(a.llvm, b.llvm));
    case BinaryOp::kShl:
    case BinaryOp::kShr: return Shift(op, a, b);
    default: break;
  }
  HONE_CHECK(false) << ToString(op) << " of " << ToString(a.dtype);
  return a;
}

// x86 traps on division by zero and on the most negative number by -1; neither reaches it here.
Value Arith::IntDivide(BinaryOp op, const Value& a, const Value& b) {
  llvm::Type* type = a.llvm->getType();
  llvm::Value* zero = SplatInt(type, 0);
  llvm::Value* one = SplatInt(type, 1);
  const bool is_div = op == BinaryOp::kDiv || op == BinaryOp::kTruncDiv;
  const bool is_floor = op == BinaryOp::kDiv || op == BinaryOp::kMod;
  llvm::Value* by_zero = b_.CreateICmpEQ(b.llvm, zero);
  llvm::Value* quotient = nullptr;
  llvm::Value* rest = nullptr;
  if (ir::IsUnsigned(a.dtype) || ir::IsBool(a.dtype)) {
    llvm::Value* divisor = b_.CreateSelect(by_zero, one, b.llvm);
    quotient = b_.CreateUDiv(a.llvm, divisor);
    rest = b_.CreateSub(a.llvm, b_.CreateMul(quotient, divisor));
  } else {
    llvm::Value* negate = b_.CreateICmpEQ(b.llvm, SplatInt(type, -1));
    llvm::Value* divisor = b_.CreateSelect(b_.CreateOr(by_zero, negate), one, b.llvm);
    quotient = b_.CreateSDiv(a.llvm, divisor);
    rest = b_.CreateSub(a.llvm, b_.CreateMul(quotient, divisor));
    if (is_floor) {
      llvm::Value* adjust = b_.CreateAnd(b_.CreateICmpNE(rest, zero),
                                         b_.CreateICmpSLT(b_.CreateXor(rest, divisor), zero));
      quotient = b_.CreateSub(quotient, b_.CreateZExt(adjust, type));
      rest = b_.CreateAdd(rest, b_.CreateSelect(adjust, divisor, zero));
    }
    quotient = b_.CreateSelect(negate, b_.CreateNeg(a.llvm), quotient);
  }
  llvm::Value* result =
      is_div ? b_.CreateSelect(by_zero, zero, quotient) : b_.CreateSelect(by_zero, a.llvm, rest);
  return {result, a.dtype, a.lanes};
}

// Square and multiply over the exponent's bits; a negative exponent gives 1/a truncated: 0, or +-1.
Value Arith::IntPower(const Value& a, const Value& b) {
  llvm::Type* type = a.llvm->getType();
  llvm::Value* one = SplatInt(type, 1);
  llvm::Value* zero = SplatInt(type, 0);
  llvm::Value* result = one;
  llvm::Value* square = a.llvm;
  const unsigned bits = type->getScalarSizeInBits();
  for (unsigned bit = 0; bit < bits; ++bit) {
    llvm::Value* set = b_.CreateICmpNE(
        b_.CreateAnd(b.llvm, llvm::ConstantInt::get(type, llvm::APInt::getOneBitSet(bits, bit))),
        zero);
    result = b_.CreateSelect(set, b_.CreateMul(result, square), result);
    square = b_.CreateMul(square, square);
  }
  if (ir::IsInteger(a.dtype) && !ir::IsUnsigned(a.dtype)) {
    llvm::Value* unit =
        b_.CreateOr(b_.CreateICmpEQ(a.llvm, one), b_.CreateICmpEQ(a.llvm, SplatInt(type, -1)));
    llvm::Value* keep = b_.CreateOr(unit, b_.CreateICmpSGE(b.llvm, zero));
    result = b_.CreateSelect(keep, result, zero);
  }
  return {result, a.dtype, a.lanes};
}

Value Arith::Shift(BinaryOp op, const Value& a, const Value& b) {
  llvm::Type* type = a.llvm->getType();
  const int64_t bits = type->getScalarSizeInBits();
  llvm::Value* fits = b_.CreateICmpULT(b.llvm, SplatInt(type, bits));
  if (op == BinaryOp::kShr && !ir::IsUnsigned(a.dtype) && !ir::IsBool(a.dtype)) {
    llvm::Value* amount = b_.CreateSelect(fits, b.llvm, SplatInt(type, bits - 1));
    return {b_.CreateAShr(a.llvm, amount), a.dtype, a.lanes};
  }
  llvm::Value* amount = b_.CreateSelect(fits, b.llvm, SplatInt(type, 0));
  llvm::Value* shifted =
      op == BinaryOp::kShl ? b_.CreateShl(a.llvm, amount) : b_.CreateLShr(a.llvm, amount);
  return {b_.CreateSelect(fits, shifted, SplatInt(type, 0)), a.dtype, a.lanes};
}

Value Arith::Cast(const Value& value, DType dtype) {
  if (value.dtype == dtype) return value;
  return ir::IsFloat(value.dtype) ? CastFromFloat(value, dtype) : CastFromInt(value, dtype);
}

Value Arith::CastFromFloat(const Value& value, DType dtype) {
  llvm::Type* type = TypeOf(dtype, value.lanes);
  llvm::Value* x = value.llvm;
  if (ir::IsBool(dtype)) {
    return {b_.CreateFCmpUNE(x, Splat(x->getType(), 0)), dtype, value.lanes};
  }
  if (ir::IsInteger(dtype)) {
    if (value.lanes > 1 && ir::SizeOf(dtype) <= 2)
      return {SaturateLanes(x, dtype, value.lanes), dtype, value.lanes};
    const auto id =
        ir::IsUnsigned(dtype) ? llvm::Intrinsic::fptoui_sat : llvm::Intrinsic::fptosi_sat;
    return {b_.CreateIntrinsic(id, {type, x->getType()}, {x}), dtype, value.lanes};
  }
  if (dtype == DType::kF64) return {b_.CreateFPExt(x, type), dtype, value.lanes};
  if (dtype == DType::kF32) {
    return {value.dtype == DType::kF64 ? b_.CreateFPTrunc(x, type) : x, dtype, value.lanes};
  }
  // Through memory form: that is where the rounding to 16 bits is.
  if (value.dtype == DType::kF64) x = RoundToOddF32(x, value.lanes);
  return FromMemory(ToMemory({x, dtype, value.lanes}), dtype, value.lanes);
}

// LLVM takes saturating conversions of vectors apart, lane by lane; clamped numbers convert whole.
llvm::Value* Arith::SaturateLanes(llvm::Value* x, DType dtype, int lanes) {
  const int bits = static_cast<int>(8 * ir::SizeOf(dtype));
  const bool is_signed = !ir::IsUnsigned(dtype);
  const double limit = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  llvm::Value* low = Splat(x->getType(), is_signed ? -limit : 0);
  llvm::Value* high = Splat(x->getType(), limit - 1);
  llvm::Value* clamped = b_.CreateSelect(b_.CreateFCmpOGT(x, low), x, low);  // a NaN: low
  clamped = b_.CreateSelect(b_.CreateFCmpOLT(clamped, high), clamped, high);
  if (is_signed) clamped = b_.CreateSelect(b_.CreateFCmpORD(x, x), clamped, Splat(x->getType(), 0));
  return b_.CreateTrunc(b_.CreateFPToSI(clamped, TypeOf(DType::kI32, lanes)), TypeOf(dtype, lanes));
}

Value Arith::CastFromInt(const Value& value, DType dtype) {
  llvm::Type* type = TypeOf(dtype, value.lanes);
  llvm::Value* x = value.llvm;
  const bool is_unsigned = ir::IsUnsigned(value.dtype) || ir::IsBool(value.dtype);
  if (ir::IsBool(dtype)) {
    return {b_.CreateICmpNE(x, SplatInt(x->getType(), 0)), dtype, value.lanes};
  }
  if (ir::IsInteger(dtype)) {
    return {is_unsigned ? b_.CreateZExtOrTrunc(x, type) : b_.CreateSExtOrTrunc(x, type), dtype,
            value.lanes};
  }
  if (dtype == DType::kF16 || dtype == DType::kBF16) {
    const Value wide = CastFromInt(value, ir::SizeOf(value.dtype) > 2 ? DType::kF64 : DType::kF32);
    return CastFromFloat(wide, dtype);
  }
  return {is_unsigned ? b_.CreateUIToFP(x, type) : b_.CreateSIToFP(x, type), dtype, value.lanes};
}

Value Arith::Identity(Combiner combiner, DType dtype, int result) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool first = combiner == Combiner::kArgMin || combiner == Combiner::kArgMax;
  if (ir::IsArg(combiner) && result == 1) {
    return Int(dtype, first ? std::numeric_limits<int64_t>::max() : -1);
  }
  const bool low = combiner == Combiner::kMax || combiner == Combiner::kArgMax ||
                   combiner == Combiner::kArgMaxLast;
  const bool high = combiner == Combiner::kMin || combiner == Combiner::kArgMin ||
                    combiner == Combiner::kArgMinLast;
  if (!low && !high) return Number(dtype, combiner == Combiner::kProduct ? 1 : 0);
  if (ir::IsFloat(dtype)) return Float(dtype, low ? -kInfinity : kInfinity);
  if (ir::IsBool(dtype)) return Int(dtype, low ? 0 : 1);
  const auto bits = static_cast<unsigned>(8 * ir::SizeOf(dtype));
  llvm::APInt limit;
  if (ir::IsUnsigned(dtype)) {
    limit = low ? llvm::APInt::getMinValue(bits) : llvm::APInt::getMaxValue(bits);
  } else {
    limit = low ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits);
  }
  return {llvm::ConstantInt::get(TypeOf(dtype, 1), limit), dtype, 1};
}

std::vector<Value> Arith::Combine(Combiner combiner, const std::vector<Value>& old,
                                  const std::vector<Value>& values) {
  const auto binary = [&](BinaryOp op, size_t k) { return Binary(op, old[k], values[k]); };
  switch (combiner) {
    case Combiner::kNone: return values;
    case Combiner::kSum: return {binary(BinaryOp::kAdd, 0)};
    case Combiner::kProduct:
      return {binary(ir::IsBool(old[0].dtype) ? BinaryOp::kAnd : BinaryOp::kMul, 0)};
    case Combiner::kMin: return {binary(BinaryOp::kMin, 0)};
    case Combiner::kMax: return {binary(BinaryOp::kMax, 0)};
    case Combiner::kSumSumSq: return {binary(BinaryOp::kAdd, 0), binary(BinaryOp::kAdd, 1)};
    default: break;
  }
  const Value win = ArgWins(combiner, values, old);
  return {Select(win, values[0], old[0]), Select(win, values[1], old[1])};
}

// ir::ArgWins: a NaN wins against numbers, ties go by the index.
Value Arith::ArgWins(Combiner combiner, const std::vector<Value>& a, const std::vector<Value>& b) {
  const bool is_max = combiner == Combiner::kArgMax || combiner == Combiner::kArgMaxLast;
  const bool is_last = combiner == Combiner::kArgMinLast || combiner == Combiner::kArgMaxLast;
  Value wins = Binary(is_max ? BinaryOp::kGt : BinaryOp::kLt, a[0], b[0]);
  Value tie = Binary(BinaryOp::kEq, a[0], b[0]);
  if (ir::IsFloat(a[0].dtype)) {
    const Value a_nan = Unary(UnaryOp::kIsNan, a[0]);
    const Value b_nan = Unary(UnaryOp::kIsNan, b[0]);
    wins = Binary(BinaryOp::kOr, wins, Binary(BinaryOp::kAnd, a_nan, Not(b_nan)));
    tie = Binary(BinaryOp::kOr, tie, Binary(BinaryOp::kAnd, a_nan, b_nan));
  }
  const Value earlier = Binary(is_last ? BinaryOp::kGt : BinaryOp::kLt, a[1], b[1]);
  return Binary(BinaryOp::kOr, wins, Binary(BinaryOp::kAnd, tie, earlier));
}

std::vector<Value> Arith::ReduceLanes(Combiner combiner, std::vector<Value> values) {
  for (int lanes = values[0].lanes; lanes > 1; lanes /= 2) {
    const int half = lanes / 2;
    std::vector<Value> low;
    std::vector<Value> high;
    for (const Value& value : values) {
      llvm::SmallVector<int, 64> first;
      llvm::SmallVector<int, 64> second;
      for (int k = 0; k < half; ++k) {
        first.push_back(k);
        second.push_back(half + k);
      }
      if (half == 1) {
        low.push_back({b_.CreateExtractElement(value.llvm, uint64_t{0}), value.dtype, 1});
        high.push_back({b_.CreateExtractElement(value.llvm, uint64_t{1}), value.dtype, 1});
      } else {
        low.push_back({b_.CreateShuffleVector(value.llvm, first), value.dtype, half});
        high.push_back({b_.CreateShuffleVector(value.llvm, second), value.dtype, half});
      }
    }
    values = Combine(combiner, low, high);
  }
  return values;
}

llvm::Value* Arith::AnyLane(llvm::Value* mask) { return b_.CreateOrReduce(mask); }

}  // namespace hone::codegen
