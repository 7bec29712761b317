#include "codegen/llvm_vector_math.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/core/check.h"

// Functions whose formula is the same for float and double.
namespace hone::codegen {
namespace {

using ir::UnaryOp;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Adding this to a number below 2^22 (2^51) leaves its nearest integer in the low bits.
constexpr double kRoundFloat = 0x1.8p23;
constexpr double kRoundDouble = 0x1.8p52;

// ln 2 in two parts.
constexpr double kLn2HighFloat = 0x1.62e430p-1;
constexpr double kLn2LowFloat = -0x1.05c610p-29;
constexpr double kLn2HighDouble = 0x1.62e42fefa39efp-1;
constexpr double kLn2LowDouble = 0x1.abc9e3b39803fp-56;

// exp(r), |r| <= ln2/2: error 2^-27.8 (float); Taylor's series to r^13 (double): 2^-57.
constexpr double kExpFloat[] = {1, 1, 0.5, 0.166664883, 0.041665554, 0.00837228633, 0.00140351849};
constexpr double kExpDouble[] = {1,
                                 1,
                                 1.0 / 2,
                                 1.0 / 6,
                                 1.0 / 24,
                                 1.0 / 120,
                                 1.0 / 720,
                                 1.0 / 5040,
                                 1.0 / 40320,
                                 1.0 / 362880,
                                 1.0 / 3628800,
                                 1.0 / 39916800,
                                 1.0 / 479001600,
                                 1.0 / 6227020800};

// (log(1+f) - f + f^2/2) / f^3 on [sqrt(1/2)-1, sqrt(2)-1]: 2^-27.
constexpr double kLogFloat[] = {0.333333313, -0.250008225, 0.20001258,  -0.166233063,
                                0.142009541, -0.13159211,  0.127667397, -0.076452449};
// (log((1+s)/(1-s)) - 2s) / s^3 in s^2, s up to (sqrt(2)-1)/(sqrt(2)+1): 2^-58.
constexpr double kLogDouble[] = {0.66666666666667307, 0.39999999999433383, 0.2857142873902902,
                                 0.22222198860928727, 0.18183551595790937, 0.15314331039622678,
                                 0.1479351698277156};

// (sin(r) - r) / r^3 and (cos(r) - 1 + r^2/2) / r^4 in r^2, |r| <= pi/4.
constexpr double kSinFloat[] = {-0.166666552, 0.00833219104, -0.000195185989};
constexpr double kCosFloat[] = {0.0416666456, -0.0013887299, 2.4430241e-05};
constexpr double kSinDouble[] = {-0.16666666666666632,    0.0083333333333224634,
                                 -0.00019841269829822959, 2.7557313691269303e-06,
                                 -2.5050757319925395e-08, 1.5896717609074439e-10};
constexpr double kCosDouble[] = {0.041666666666666616,   -0.001388888888887649,
                                 2.4801587290763511e-05, -2.7557314680731928e-07,
                                 2.0875763539152932e-09, -1.1361552043935982e-11};

// (atan(t) - t) / t^3 in t^2, |t| <= tan(pi/8): 2^-33 and 2^-59.
constexpr double kAtanFloat[] = {-0.333333313, 0.199997976, -0.142789364,
                                 0.110066824,  -0.08265315, 0.0431212671};
constexpr double kAtanDouble[] = {
    -0.33333333333333232,  0.19999999999961199,  -0.14285714280831494,  0.11111110810810859,
    -0.090908984526788889, 0.076920713297007809, -0.066632190942975386, 0.058486589017539246,
    -0.050425169194044467, 0.038140624393923434, -0.017985236417075005};

}  // namespace

llvm::Value* VectorMath::Unary(UnaryOp op, llvm::Value* x) {
  const Number number{&b_, x};
  return (number.is_double() ? UnaryDouble(op, number) : UnaryFloat(op, number)).v;
}

llvm::Value* VectorMath::Pow(llvm::Value* x, llvm::Value* y) {
  const Number base{&b_, x};
  const Number exponent{&b_, y};
  if (base.is_double()) return PowDouble(base, exponent).v;
  return ToFloat(PowDouble(ToDouble(base), ToDouble(exponent))).v;
}

llvm::Value* VectorMath::Fmod(llvm::Value* x, llvm::Value* y) {
  const Number a{&b_, x};
  const Number b{&b_, y};
  if (a.is_double()) return FmodDouble(a, b).v;
  return ToFloat(FmodDouble(ToDouble(a), ToDouble(b))).v;
}

Number VectorMath::UnaryFloat(UnaryOp op, const Number& x) {
  switch (op) {
    case UnaryOp::kExp: return Exp(x);
    case UnaryOp::kLog: return Log(x);
    case UnaryOp::kSin: return SinCos(x, 0);
    case UnaryOp::kCos: return SinCos(x, 1);
    case UnaryOp::kTan: return Tan(x);
    case UnaryOp::kAtan: return Atan(x);
    case UnaryOp::kTanh: return TanhFloat(x);
    case UnaryOp::kErf: return ErfFloat(x);
    case UnaryOp::kSigmoid: return Sigmoid(x);
    default: return InDouble(op, x);
  }
}

Number VectorMath::UnaryDouble(UnaryOp op, const Number& x) {
  switch (op) {
    case UnaryOp::kExp: return Exp(x);
    case UnaryOp::kLog: return Log(x);
    case UnaryOp::kSin: return SinCos(x, 0);
    case UnaryOp::kCos: return SinCos(x, 1);
    case UnaryOp::kTan: return Tan(x);
    case UnaryOp::kAsin: return AsinDouble(x);
    case UnaryOp::kAcos: return AcosDouble(x);
    case UnaryOp::kAtan: return Atan(x);
    case UnaryOp::kSinh: return SinhDouble(x);
    case UnaryOp::kCosh: return CoshDouble(x);
    case UnaryOp::kTanh: return TanhDouble(x);
    case UnaryOp::kAsinh: return AsinhDouble(x);
    case UnaryOp::kAcosh: return AcoshDouble(x);
    case UnaryOp::kAtanh: return AtanhDouble(x);
    case UnaryOp::kErf: return ErfDouble(x);
    case UnaryOp::kSigmoid: return Sigmoid(x);
    default: break;
  }
  HONE_CHECK(false) << ToString(op) << " is not a function of the vector maths";
  return x;
}

Number VectorMath::ToDouble(const Number& x) {
  llvm::Type* scalar = b_.getDoubleTy();
  llvm::Type* type = x.type()->isVectorTy() ? x.type()->getWithNewType(scalar) : scalar;
  return x.Of(b_.CreateFPExt(x.v, type));
}

Number VectorMath::ToFloat(const Number& x) {
  llvm::Type* scalar = b_.getFloatTy();
  llvm::Type* type = x.type()->isVectorTy() ? x.type()->getWithNewType(scalar) : scalar;
  return x.Of(b_.CreateFPTrunc(x.v, type));
}

Number VectorMath::InDouble(UnaryOp op, const Number& x) {
  return ToFloat(UnaryDouble(op, ToDouble(x)));
}

// x * 2^exponent for an integral exponent of at most twice the format's (where the machine has an
// instruction for it: floor(exponent), any); overflow, underflow and subnormal results as the
// hardware rounds them.
Number VectorMath::ScaleByPowerOfTwo(const Number& x, const Number& exponent) {
  if (llvm::Value* scaled = instructions_.Scale(b_, x.v, exponent.v)) return x.Of(scaled);
  // In two steps: 2^exponent alone may not be representable.
  const Number half = Floor(exponent * 0.5);
  const auto power = [&](const Number& e) {
    const uint64_t bias = x.is_double() ? 1023 : 127;
    const uint64_t mantissa = x.is_double() ? 52 : 23;
    llvm::Value* integer = (e + (x.is_double() ? kRoundDouble : kRoundFloat)).Bits();
    return x.FromBits(
        b_.CreateShl(b_.CreateAdd(integer, x.BitsConstant(bias)), x.BitsConstant(mantissa)));
  };
  return x * power(half) * power(exponent - half);
}

// x * 2^n where the low bits of `biased` hold n, |n| at most twice the format's exponents: in two
// steps, because 2^n alone may not be representable.
Number VectorMath::ScaleByInteger(const Number& x, llvm::Value* biased) {
  llvm::Value* mantissa = x.BitsConstant(x.is_double() ? 52 : 23);
  llvm::Value* one = x.Constant(1).Bits();
  // Shifted to the exponent's place, what stands above it is lost.
  llvm::Value* all = b_.CreateShl(biased, mantissa);
  llvm::Value* half = b_.CreateShl(b_.CreateLShr(biased, x.BitsConstant(1)), mantissa);
  const Number first = x * x.FromBits(b_.CreateAdd(half, one));
  return first * x.FromBits(b_.CreateAdd(b_.CreateSub(all, half), one));
}

Number VectorMath::Exp(const Number& x) {
  if (instructions_.HasTables(x.type())) return ExpByTable(x);
  const bool d = x.is_double();
  // Outside these limits the result is 0 or infinity; inside, 2^n stays within reach.
  const Number limited = AtLeast(AtMost(x, d ? 710 : 89), d ? -746 : -104);
  const double round = d ? kRoundDouble : kRoundFloat;
  const Number biased = Fma(limited, std::numbers::log2e, x.Constant(round));
  const Number n = biased - round;
  Number rest = Fma(n, d ? -kLn2HighDouble : -kLn2HighFloat, limited);
  rest = Fma(n, d ? -kLn2LowDouble : -kLn2LowFloat, rest);
  const Number mantissa = d ? Polynomial(rest, kExpDouble) : Polynomial(rest, kExpFloat);
  if (llvm::Value* scaled = instructions_.Scale(b_, mantissa.v, n.v)) return x.Of(scaled);
  return ScaleByInteger(mantissa, biased.Bits());
}

// x = 2^e * m with m in [sqrt(1/2), sqrt(2)).
Number VectorMath::Log(const Number& x) {
  const bool d = x.is_double();
  llvm::Value* small = Less(x, d ? 0x1p-1022 : 0x1p-126);
  const Number normal = Select(small, x * (d ? 0x1p54 : 0x1p23), x);
  const uint64_t root_half = d ? 0x3fe6a09e00000000u : 0x3f3504f3u;
  const uint64_t mantissa_bits = d ? 52 : 23;
  llvm::Value* bits = b_.CreateSub(normal.Bits(), x.BitsConstant(root_half));
  llvm::Value* high = b_.CreateAShr(bits, x.BitsConstant(mantissa_bits));
  const Number m =
      x.FromBits(b_.CreateSub(normal.Bits(), b_.CreateShl(high, x.BitsConstant(mantissa_bits))));
  const double round = d ? kRoundDouble : kRoundFloat;
  // A small integer as a float: added to the low bits of a large one.
  Number e = x.FromBits(b_.CreateAdd(high, x.Constant(round).Bits())) - round;
  e = e - Select(small, x.Constant(d ? 54 : 23), x.Constant(0));
  const Number f = m - 1.0;
  const Number square = f * f;
  Number result = f;
  if (d) {
    // f - f^2/2 + s (f^2/2 + R), s = f / (2 + f): the form of FreeBSD's e_log.c.
    const Number s = f / (f + 2.0);
    const Number z = s * s;
    const Number half_square = square * 0.5;
    const Number tail = Fma(s, Fma(z, Polynomial(z, kLogDouble), half_square), e * kLn2LowDouble);
    result = Fma(e, kLn2HighDouble, f - (half_square - tail));
  } else {
    const Number tail = Fma(f * square, Polynomial(f, kLogFloat), e * kLn2LowFloat);
    result = Fma(e, kLn2HighFloat, f + Fma(square, -0.5, tail));
  }
  result = Select(Equal(x, kInfinity), x, result);
  result = Select(Equal(x, 0), x.Constant(-kInfinity), result);
  return Select(b_.CreateFCmpULT(x.v, x.Constant(0).v), x.Constant(kNan), result);
}

// With s = exp(-|x|), which never overflows: 1 / (1 + s) or s / (1 + s).
Number VectorMath::Sigmoid(const Number& x) {
  const Number s = Exp(-Abs(x));
  return Select(Less(x, 0.0), s, x.Constant(1)) / (s + 1.0);
}

Number VectorMath::SinOf(const Number& rest) {
  const Number z = rest * rest;
  const Number p = rest.is_double() ? Polynomial(z, kSinDouble) : Polynomial(z, kSinFloat);
  return Fma(rest * z, p, rest);
}

Number VectorMath::CosOf(const Number& rest) {
  const Number z = rest * rest;
  const Number p = rest.is_double() ? Polynomial(z, kCosDouble) : Polynomial(z, kCosFloat);
  return Fma(z * z, p, Fma(z, -0.5, rest.Constant(1)));
}

// sin(x + quadrants * pi/2). Neither the reduction nor the polynomial keeps the sign of a zero.
Number VectorMath::SinCos(const Number& x, int quadrants) {
  const Reduced reduced = ReduceHalfPi(x);
  llvm::Value* q = b_.CreateAdd(reduced.quadrant, x.BitsConstant(static_cast<uint64_t>(quadrants)));
  llvm::Value* odd = b_.CreateICmpNE(b_.CreateAnd(q, x.BitsConstant(1)), x.BitsConstant(0));
  const Number value = Select(odd, CosOf(reduced.rest), SinOf(reduced.rest));
  llvm::Value* sign =
      b_.CreateShl(b_.CreateAnd(q, x.BitsConstant(2)), x.BitsConstant(x.is_double() ? 62 : 30));
  const Number result = x.FromBits(b_.CreateXor(value.Bits(), sign));
  return quadrants == 0 ? Select(Equal(x, 0), x, result) : result;
}

Number VectorMath::Tan(const Number& x) {
  const Reduced reduced = ReduceHalfPi(x);
  const Number sine = SinOf(reduced.rest);
  const Number cosine = CosOf(reduced.rest);
  llvm::Value* odd =
      b_.CreateICmpNE(b_.CreateAnd(reduced.quadrant, x.BitsConstant(1)), x.BitsConstant(0));
  return Select(Equal(x, 0), x, Select(odd, -cosine, sine) / Select(odd, sine, cosine));
}

// Around 0, pi/4 or pi/2.
Number VectorMath::Atan(const Number& x) {
  constexpr double kTanPi8 = 0.41421356237309503;
  constexpr double kTan3Pi8 = 2.4142135623730949;
  constexpr double kPi = std::numbers::pi;
  constexpr double kPiLow = 1.2246467991473532e-16;
  const Number a = Abs(x);
  llvm::Value* middle = Greater(a, kTanPi8);
  llvm::Value* large = Greater(a, kTan3Pi8);
  const Number above = Select(large, x.Constant(-1), Select(middle, a - 1.0, a));
  const Number below = Select(large, a, Select(middle, a + 1.0, x.Constant(1)));
  const Number t = above / below;
  const Number z = t * t;
  const Number p = x.is_double() ? Polynomial(z, kAtanDouble) : Polynomial(z, kAtanFloat);
  const Number tail = Fma(t * z, p, t);
  const auto base = [&](double half_pi) {
    const Number zero = x.Constant(0);
    return Select(large, x.Constant(half_pi), Select(middle, x.Constant(half_pi / 2), zero));
  };
  const double low =
      x.is_double() ? kPiLow / 2 : kPi / 2 - static_cast<double>(static_cast<float>(kPi / 2));
  return CopySign(base(kPi / 2) + (tail + base(low)), x);
}

}  // namespace hone::codegen
