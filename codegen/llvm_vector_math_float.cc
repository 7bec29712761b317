#include <cstddef>
#include <iterator>

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

// erf(x) = x P(x^2) / Q(x^2) on [0, 3.87]: 2^-25.6. As code rounds it, it is 1 at kErfEnd, and so
// beyond.
constexpr double kErfP[] = {1.12837911,    0.188591033,    0.0525526367,
                            0.00369900372, 0.000285396614, 2.09136601e-06};
constexpr double kErfQ[] = {1,            0.5004673,     0.113398574,
                            0.0148351882, 0.00115005684, 3.8543636e-05};
constexpr double kErfEnd = 3.85400009;

// erf(x)/x around k/8, k < 32, in x - k/8, |x - k/8| <= 1/16, 2^-27.6: a coarse number of eight
// bits, what it lacks, and the powers from the first to the fourth.
constexpr size_t kErfPieces = 32;
constexpr float kErfOverX[][kErfPieces] = {
    {1.125F,      1.125F,      1.1015625F,  1.078125F,   1.0390625F,  0.99609375F, 0.94921875F,
     0.89453125F, 0.84375F,    0.7890625F,  0.73828125F, 0.69140625F, 0.64453125F, 0.6015625F,
     0.5625F,     0.52734375F, 0.49804688F, 0.46875F,    0.44335938F, 0.41992188F, 0.40039062F,
     0.38085938F, 0.36328125F, 0.34765625F, 0.33398438F, 0.3203125F,  0.30859375F, 0.296875F,
     0.28515625F, 0.27539062F, 0.26757812F, 0.2578125F},
    {0.003379167F,    -0.0024703615F,  0.0037430606F,   -0.00047990822F, 0.0019372556F,
     0.0010916614F,   -0.0010112385F,  0.0015545341F,   -0.001049207F,   0.0006159282F,
     3.8852642e-05F,  -0.0018280152F,  -0.00046115232F, 0.0005567205F,   0.0013123836F,
     0.0017176141F,   -0.0003857425F,  0.00058928033F,  0.0004349732F,   0.00080109836F,
     -0.0005534058F,  1.4767575e-05F,  0.00031852385F,  0.0001531918F,   -0.0006584052F,
     -0.00031566696F, -0.00090276625F, -0.00057924155F, 0.0005578234F,   0.00047136255F,
     -0.00091148866F, 0.00025200515F},
    {1.2856421e-08F, -0.093154855F, -0.18116556F, -0.25944588F, -0.3244341F,  -0.37389717F,
     -0.40703508F,   -0.4243893F,   -0.42759323F, -0.4190262F,  -0.40143922F, -0.37761348F,
     -0.35009328F,   -0.3210136F,   -0.29202142F, -0.264275F,   -0.23849712F, -0.21505813F,
     -0.19406758F,   -0.17545958F,  -0.15906358F, -0.14465763F, -0.1320049F,  -0.120876245F,
     -0.111062236F,  -0.10237826F,  -0.09466516F, -0.08778755F, -0.08163105F, -0.07609925F,
     -0.07111087F,   -0.0665972F},
    {-0.37612754F,  -0.36564556F,  -0.33535105F, -0.2884964F,  -0.2299138F,  -0.1652636F,
     -0.100217335F, -0.039728634F, 0.012485711F, 0.054193653F, 0.084630094F, 0.104268044F,
     0.11446509F,   0.117074475F,  0.114094324F, 0.10740079F,  0.09858157F,  0.08886298F,
     0.07910994F,   0.06987127F,   0.061447132F, 0.0539598F,   0.04741551F,  0.041753687F,
     0.036881518F,  0.032696284F,  0.02909856F,  0.025998358F, 0.023317762F, 0.020990675F,
     0.01896202F,   0.017186044F},
    {3.921184e-05F,  0.05528218F,    0.10454864F,   0.14276424F,   0.16665184F,    0.17511487F,
     0.16915894F,    0.15148024F,    0.1258209F,    0.09622803F,   0.06636488F,    0.03909996F,
     0.016271044F,   -0.0012905741F, -0.013608795F, -0.021251533F, -0.025133781F,  -0.026240142F,
     -0.025488455F,  -0.023632037F,  -0.021236222F, -0.018693857F, -0.016242532F,  -0.014004285F,
     -0.0120346695F, -0.0103398F,    -0.00889725F,  -0.007679075F, -0.0066519477F, -0.0057870266F,
     -0.005055932F,  -0.0044361884F},
    {0.11235086F,   0.106506675F,  0.08892279F,   0.0628408F,    0.0323388F,     0.0017898501F,
     -0.024831861F, -0.044727996F, -0.0566128F,   -0.060590215F, -0.057916343F,  -0.050516173F,
     -0.04049627F,  -0.029744443F, -0.019674528F, -0.011183422F, -0.0046522766F, -5.4013082e-05F,
     0.0028425227F, 0.004409436F,  0.0050438945F, 0.0050532385F, 0.004718225F,   0.004213967F,
     0.0036571508F, 0.0031295738F, 0.002647915F,  0.002236609F,  0.0018801548F,  0.00158857F,
     0.0013437242F, 0.0011413513F}};
// Where erf is nearer to 1 than to the number before; beyond, x would be in the next piece.
constexpr double kErfTableEnd = 0x1.f7fffep1;

/// x P(x^2) / Q(x^2) up to an end, where it is what it is beyond.
Number Odd(const Number& x, double end, llvm::ArrayRef<double> p, llvm::ArrayRef<double> q) {
  const Number limited = AtLeast(AtMost(x, end), -end);
  const Number z = limited * limited;
  return limited * Polynomial(z, p) / Polynomial(z, q);
}

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

Number VectorMath::TanhFloat(const Number& x) { return Odd(x, kTanhEnd, kTanhP, kTanhQ); }

// erf(x) = x (coarse + rest). Half of the instructions go to units that do not multiply.
Number VectorMath::ErfByTable(const Number& x) {
  constexpr double kPieces = 8, kRound = 0x1p23;
  const Number limited = AtLeast(AtMost(x, kErfTableEnd), -kErfTableEnd);
  const Number a = Abs(limited);
  const Number biased = Fma(a, kPieces, x.Constant(kRound));
  const Number r = Fma(biased - kRound, -1 / kPieces, a);
  llvm::Value* piece = biased.Bits();
  const auto look_up = [&](size_t power) {
    const auto half = [&](size_t first) {
      llvm::Value* numbers = llvm::ConstantDataVector::get(
          b_.getContext(), llvm::ArrayRef(kErfOverX[power] + first, kErfPieces / 2));
      return b_.CreateBitCast(numbers, piece->getType());
    };
    return x.FromBits(instructions_.LookUpOfTwo(b_, half(0), piece, half(kErfPieces / 2)));
  };
  size_t power = std::size(kErfOverX) - 1;
  Number rest = look_up(power);
  while (--power > 0) rest = Fma(rest, r, look_up(power));
  return Fma(limited, look_up(0), limited * rest);
}

Number VectorMath::ErfFloat(const Number& x) {
  if (instructions_.HasTables(x.type()) && instructions_.HasWordTables()) return ErfByTable(x);
  return Odd(x, kErfEnd, kErfP, kErfQ);
}

}  // namespace hone::codegen
