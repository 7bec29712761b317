#include "codegen/llvm_vector_math.h"

// Functions with a formula of their own for float.
namespace hone::codegen {
namespace {

// tanh(x) = x P(x^2) / Q(x^2) on [0, 9], beyond which it is 1: 2^-29.5.
constexpr double kTanhP[] = {0.999999999,    0.136808249,    0.00386946788,
                             2.80304716e-05, 3.06404118e-08, -1.22446083e-11};
constexpr double kTanhQ[] = {1, 0.47014157, 0.0272500113, 0.000394064153, 1.28897507e-06};

// erf(x)/x - 1 in x^2, |x| < 0.93: 2^-29.9.
constexpr double kErfSmall[] = {0.128379166,  -0.376126289,    0.112836242,   -0.026855588,
                                0.0051919478, -0.000804383948, 7.96966342e-05};
constexpr double kErfSmallEnd = 0.92;
// -log(erfc(x)) on [0.9, 4], beyond which erf is 1.
constexpr double kErfLarge[] = {-0.000170554791, 1.12949514,    0.633386731,    0.108236477,
                                -0.0250913855,   0.00416048616, -0.00043229782, 2.09097707e-05};
constexpr double kErfLargeEnd = 4;

}  // namespace

Number VectorMath::TanhFloat(const Number& x) {
  const Number limited = AtLeast(AtMost(x, 9), -9);
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
