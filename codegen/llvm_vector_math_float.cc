#include "codegen/llvm_vector_math.h"

// Functions with a formula of their own for float.
namespace hone::codegen {
namespace {

// log2(e) in two parts.
constexpr double kLog2eHigh = 0x1.715476p0;
constexpr double kLog2eLow = 0x1.4ae0cp-26;
// (2^r - 1) / r, |r| <= 1/32: 2^-29.2.
constexpr double kExp2[] = {0.693147182, 0.240234286, 0.0555023588};

// 2^(k/16), and what rounding takes from it, divided by kExp2[0].
constexpr float kPower[] = {1.0F,        1.04427373F, 1.09050775F, 1.13878858F,
                            1.18920708F, 1.24185777F, 1.29683959F, 1.35425556F,
                            1.41421354F, 1.47682619F, 1.54221082F, 1.61049032F,
                            1.68179286F, 1.75625217F, 1.8340081F,  1.91520655F};
constexpr float kPowerRest[] = {0.0F,
                                6.97322307e-08F,
                                -1.88669027e-08F,
                                7.77067584e-08F,
                                5.47882983e-08F,
                                6.4875664e-08F,
                                -5.79819037e-08F,
                                -1.46049057e-08F,
                                3.49178855e-08F,
                                -6.49342411e-08F,
                                1.16438539e-08F,
                                1.4190662e-08F,
                                -3.57143861e-08F,
                                -1.33244002e-08F,
                                -1.62148517e-08F,
                                1.42038061e-08F};

// tanh(x) = x P(x^2) / Q(x^2) on [0, 9]: 2^-29.5. Rounded as code rounds it is 1 at kTanhEnd and so
// beyond, while at 9 it would be the next number above: 1 + tanh(x) must vanish for negative x.
constexpr double kTanhP[] = {0.999999999,    0.136808249,    0.00386946788,
                             2.80304716e-05, 3.06404118e-08, -1.22446083e-11};
constexpr double kTanhQ[] = {1, 0.47014157, 0.0272500113, 0.000394064153, 1.28897507e-06};
constexpr double kTanhEnd = 8.85000038;

// erf(x)/x - 1 in x^2, |x| < 0.93: 2^-29.9.
constexpr double kErfSmall[] = {0.128379166,  -0.376126289,    0.112836242,   -0.026855588,
                                0.0051919478, -0.000804383948, 7.96966342e-05};
constexpr double kErfSmallEnd = 0.92;
// -log(erfc(x)) on [0.9, 4], beyond which erf is 1.
constexpr double kErfLarge[] = {-0.000170554791, 1.12949514,    0.633386731,    0.108236477,
                                -0.0250913855,   0.00416048616, -0.00043229782, 2.09097707e-05};
constexpr double kErfLargeEnd = 4;

}  // namespace

// 2^n * 2^r with n = x log2(e) rounded to sixteenths: 2^n is one of 16 numbers, looked up by n's
// low bits in two parts, times a power of two. Half of the instructions go to units that do not
// multiply; 7 multiply.
Number VectorMath::ExpByTable(const Number& x) {
  constexpr double kRound = 0x1.8p19;  // leaves four bits after the point
  const Number biased = Fma(x, kLog2eHigh, x.Constant(kRound));
  const Number n = biased - kRound;
  Number rest = Fma(x, kLog2eLow, Fma(x, kLog2eHigh, -n));
  // Far outside, or infinite, n alone decides; NaN is in n, too.
  rest = x.Of(instructions_.ToMagnitude(b_, rest.v, x.Constant(0.0625).v));
  const auto look_up = [&](llvm::ArrayRef<float> table) {
    llvm::Value* numbers = llvm::ConstantDataVector::get(b_.getContext(), table);
    return x.Of(instructions_.LookUp(b_, numbers, biased.Bits()));
  };
  const Number power = look_up(kPower);
  const Number slope = Fma(power, rest, look_up(kPowerRest));
  return ScaleByPowerOfTwo(Fma(slope, Polynomial(rest, kExp2), power), n);
}

Number VectorMath::TanhFloat(const Number& x) {
  const Number limited = AtLeast(AtMost(x, kTanhEnd), -kTanhEnd);
  const Number z = limited * limited;
  return limited * Polynomial(z, kTanhP) / Polynomial(z, kTanhQ);
}

Number VectorMath::ErfFloat(const Number& x) {
  const Number a = Abs(x);
  const Number z = a * a;
  const Number small = Fma(a, Polynomial(z, kErfSmall), a);
  const Number large = 1.0 - Exp(-Polynomial(AtMost(a, kErfLargeEnd), kErfLarge));
  return CopySign(Select(Greater(a, kErfSmallEnd), large, small), x);
}

}  // namespace hone::codegen
