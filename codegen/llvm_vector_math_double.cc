#include <limits>
#include <numbers>

#include "codegen/llvm_vector_math.h"

// Functions with a formula of their own for double; float takes most of them from here.
namespace hone::codegen {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kHalfPi = std::numbers::pi / 2;
constexpr double kHalfPiLow = 6.123233995736766e-17;

// (asin(s) - s) / s^3 in s^2, |s| <= 1/2: 2^-59.
constexpr double kAsin[] = {0.16666666666666741,   0.0749999999997467,   0.044642857171761176,
                            0.030381942817643958,  0.022372212441254619, 0.017351650213864804,
                            0.013980434491325669,  0.011401589333967755, 0.010767509476620321,
                            0.0037472508744202824, 0.021623457846390651, -0.020899332542103039,
                            0.032576887776354341};

// erf(x)/x - 1 in x^2, |x| <= 0.84: 2^-55.8.
constexpr double kErfSmall[] = {
    0.12837916709551256,     -0.37612638903183249,    0.1128379167092781,
    -0.026866170639352226,   0.0052239775626781093,   -0.00085483230407653709,
    0.00012055175054742895,  -1.4921613196931689e-05, 1.6395380490687465e-06,
    -1.5672091143062804e-07, 1.0604890745850303e-08};
constexpr double kErfSmallEnd = 0.84375;
// exp(t^2) erfc(t) in u = (t-3)/(t+3), t in [0.84, 6], beyond which erf is 1: 2^-57.8 of erf.
constexpr double kErfcScaled[] = {
    0.1790011511813786,      -0.32623356004392556,  0.24560380169746632,    -0.15011593645455612,
    0.07166584115105569,     -0.02439244638035231,  0.0042695181524006823,  0.00070949007581963747,
    -0.00059175411896604578, 5.609552680319371e-05, 7.8403350640820146e-05, -1.9196693186495238e-06,
    -5.2509451212426577e-06};
constexpr double kErfEnd = 6;

// (exp(r) - 1 - r) / r^2, |r| <= ln2/2: Taylor's series.
constexpr double kExpm1[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                             1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                             1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

// Above this exp(-x) is nothing beside exp(x).
constexpr double kHyperbolicEnd = 22;
// Above this sqrt(x^2 + 1) is x.
constexpr double kLargeForSquare = 0x1p28;

}  // namespace

// exp(x) - 1 for x in [0, 64].
Number VectorMath::Expm1Double(const Number& x) {
  constexpr double kRound = 0x1.8p52;
  const Number n = Fma(x, std::numbers::log2e, x.Constant(kRound)) - kRound;
  Number r = Fma(n, -0x1.62e42fefa39efp-1, x);
  r = Fma(n, -0x1.abc9e3b39803fp-56, r);
  const Number p = Fma(r * r, Polynomial(r, kExpm1), r);
  const Number scale = ScaleByPowerOfTwo(x.Constant(1), n);
  return Fma(scale, p, scale - 1.0);
}

// log(u) of the rounded u = 1 + x, corrected by what rounding lost.
Number VectorMath::Log1pDouble(const Number& x) {
  const Number u = x + 1.0;
  const Number log = Log(u);
  const Number lost = (x - (u - 1.0)) / u;
  llvm::Value* usual = b_.CreateAnd(Greater(u, 0), Less(u, kInfinity));
  return Select(usual, log + lost, log);
}

Number VectorMath::TanhDouble(const Number& x) {
  const Number t = Expm1Double(AtMost(Abs(x), kHyperbolicEnd) * 2.0);
  return CopySign(t / (t + 2.0), x);
}

Number VectorMath::SinhDouble(const Number& x) {
  const Number a = Abs(x);
  const Number t = Expm1Double(AtMost(a, kHyperbolicEnd));
  const Number half = Exp(a * 0.5);  // squared: exp(a) overflows before sinh does
  const Number small = (t + t / (t + 1.0)) * 0.5;
  return CopySign(Select(Greater(a, kHyperbolicEnd), half * 0.5 * half, small), x);
}

Number VectorMath::CoshDouble(const Number& x) {
  const Number a = Abs(x);
  const Number half = Exp(a * 0.5);
  const Number e = half * half;
  return Select(Greater(a, kHyperbolicEnd), half * 0.5 * half, (e + 1.0 / e) * 0.5);
}

Number VectorMath::AsinhDouble(const Number& x) {
  const Number a = Abs(x);
  const Number limited = AtMost(a, kLargeForSquare);
  const Number square = limited * limited;
  const Number small = Log1pDouble(limited + square / (Sqrt(square + 1.0) + 1.0));
  const Number large = Log(a) + std::numbers::ln2;
  return CopySign(Select(Greater(a, kLargeForSquare), large, small), x);
}

Number VectorMath::AcoshDouble(const Number& x) {
  const Number t = AtMost(x, kLargeForSquare) - 1.0;
  const Number small = Log1pDouble(t + Sqrt(t * (t + 2.0)));
  const Number large = Log(x) + std::numbers::ln2;
  const Number result = Select(Greater(x, kLargeForSquare), large, small);
  return Select(Less(x, 1.0), x.Constant(kNan), result);
}

Number VectorMath::AtanhDouble(const Number& x) {
  const Number a = Abs(x);
  return CopySign(Log1pDouble(a * 2.0 / (1.0 - a)) * 0.5, x);
}

// Above 1/2 by asin(x) = pi/2 - 2 asin(sqrt((1-x)/2)).
Number VectorMath::AsinDouble(const Number& x) {
  const Number a = Abs(x);
  llvm::Value* large = Greater(a, 0.5);
  const Number z = Select(large, (1.0 - a) * 0.5, a * a);
  const Number s = Select(large, Sqrt(z), a);
  const Number p = Fma(s * z, Polynomial(z, kAsin), s);
  return CopySign(Select(large, kHalfPi - (p * 2.0 - kHalfPiLow), p), x);
}

Number VectorMath::AcosDouble(const Number& x) {
  const Number a = Abs(x);
  llvm::Value* large = Greater(a, 0.5);
  const Number z = Select(large, (1.0 - a) * 0.5, a * a);
  const Number s = Select(large, Sqrt(z), a);
  const Number p = Fma(s * z, Polynomial(z, kAsin), s);
  const Number middle = kHalfPi - (CopySign(p, x) - kHalfPiLow);
  const Number twice = p * 2.0;
  const Number negative = 2 * kHalfPi - (twice - 2 * kHalfPiLow);
  return Select(large, Select(Less(x, 0.0), negative, twice), middle);
}

Number VectorMath::ErfDouble(const Number& x) {
  const Number a = Abs(x);
  const Number small = Fma(a, Polynomial(a * a, kErfSmall), a);
  const Number t = AtMost(a, kErfEnd);
  const Number u = (t - 3.0) / (t + 3.0);
  const Number large = 1.0 - Exp(-(t * t)) * Polynomial(u, kErfcScaled);
  return CopySign(Select(Greater(a, kErfSmallEnd), large, small), x);
}

// exp(y log|x|), then the cases of IEEE 754 pow.
Number VectorMath::PowDouble(const Number& x, const Number& y) {
  const Number a = Abs(x);
  Number result = Exp(y * Log(a));
  llvm::Value* whole = Equal(Floor(y), y);
  const Number half = y * 0.5;
  llvm::Value* odd = b_.CreateAnd(whole, b_.CreateFCmpUNE(Floor(half).v, half.v));
  llvm::Value* sign = b_.CreateAnd(x.Bits(), x.BitsConstant(uint64_t{1} << 63));
  const Number negated = x.FromBits(b_.CreateOr(result.Bits(), sign));
  result = Select(odd, negated, result);
  llvm::Value* no_root = b_.CreateAnd(Less(x, 0.0), b_.CreateNot(whole));
  no_root = b_.CreateAnd(no_root, Less(a, kInfinity));
  result = Select(no_root, x.Constant(kNan), result);
  // 1 to anything, and -1 to an infinity.
  llvm::Value* one =
      b_.CreateOr(Equal(x, 1.0), b_.CreateAnd(Equal(a, 1.0), Equal(Abs(y), kInfinity)));
  one = b_.CreateOr(one, Equal(y, 0.0));
  return Select(one, x.Constant(1), result);
}

}  // namespace hone::codegen
