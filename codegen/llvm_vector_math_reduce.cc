#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "llvm/IR/Module.h"

#include "codegen/llvm_vector_math.h"

// Remainders: of pi/2 for the trigonometric functions, and of any number.
namespace hone::codegen {
namespace {

// pi/2 as a sum of three floats and of three doubles.
constexpr double kHalfPiFloat[] = {1.5707963705062866, -4.3711388286737929e-08,
                                   -1.7151245100058819e-15};
constexpr double kHalfPiDouble[] = {1.5707963267948966, 6.123233995736766e-17,
                                    -1.4973849048591833e-33};

// Up to here n * pi/2 is exact enough in three parts, n a small integer.
constexpr double kSmallFloat = 0x1p16;
constexpr double kSmallDouble = 0x1p28;

// 2/pi in digits of 24 bits: enough for double's exponents. The first eight do for float's.
constexpr std::array<uint32_t, 48> kTwoOverPi = {
    0xa2f983, 0x6e4e44, 0x1529fc, 0x2757d1, 0xf534dd, 0xc0db62, 0x95993c, 0x439041,
    0xfe5163, 0xabdebb, 0xc561b7, 0x246e3a, 0x424dd2, 0xe00649, 0x2eea09, 0xd1921c,
    0xfe1deb, 0x1cb129, 0xa73ee8, 0x8235f5, 0x2ebb44, 0x84e99c, 0x7026b4, 0x5f7e41,
    0x3991d6, 0x398353, 0x39f49c, 0x845f8b, 0xbdf928, 0x3b1ff8, 0x97ffde, 0x05980f,
    0xef2f11, 0x8b5a0a, 0x6d1f6d, 0x367ecf, 0x27cb09, 0xb74f46, 0x3f669e, 0x5fea2d,
    0x7527ba, 0xc7ebe5, 0xf17b3d, 0x0739f7, 0x8a5292, 0xea6bfb, 0x5fb11f, 0x8d5d08,
};
constexpr uint64_t kDigitsForFloat = 8;
constexpr int kDigitBits = 24;
// Digits are multiplied and arguments divided by this, so that the last digit is no subnormal
// number.
constexpr int kScaleBits = 200;

llvm::Value* TwoOverPiTable(llvm::IRBuilder<>& b) {
  constexpr char kName[] = "hone.two_over_pi";
  llvm::Module* module = b.GetInsertBlock()->getModule();
  if (llvm::GlobalVariable* known = module->getGlobalVariable(kName, /*AllowInternal=*/true))
    return known;
  std::vector<double> digits;
  for (size_t k = 0; k < kTwoOverPi.size(); ++k) {
    digits.push_back(
        std::ldexp(kTwoOverPi[k], kScaleBits - kDigitBits * (static_cast<int>(k) + 1)));
  }
  llvm::Constant* values = llvm::ConstantDataArray::get(b.getContext(), digits);
  return new llvm::GlobalVariable(*module, values->getType(), /*isConstant=*/true,
                                  llvm::GlobalValue::InternalLinkage, values, kName);
}

}  // namespace

llvm::Value* VectorMath::AnyLane(llvm::Value* condition) {
  return condition->getType()->isVectorTy() ? b_.CreateOrReduce(condition) : condition;
}

VectorMath::Reduced VectorMath::ReduceSmall(const Number& x) {
  const double round = x.is_double() ? 0x1.8p52 : 0x1.8p23;
  const double* parts = x.is_double() ? kHalfPiDouble : kHalfPiFloat;
  const Number shifted = Fma(x, 2 / std::numbers::pi, x.Constant(round));
  const Number n = shifted - round;
  // The first step is exact.
  const Number first = Fma(n, -parts[0], x);
  Number rest = Fma(n, -parts[1], first);
  if (x.is_double()) {
    const Number lost = Fma(n, -parts[1], first - rest);
    rest = rest + Fma(n, -parts[2], lost);
  } else {
    rest = Fma(n, -parts[2], rest);
  }
  return {shifted.Bits(), rest};
}

// x * 2/pi modulo 4, digit by digit of 2/pi: each product is exact, its multiples of 4 are dropped
// at once, and the sum is kept in two doubles. Any finite argument; in double.
VectorMath::Reduced VectorMath::ReduceLarge(const Number& x) {
  const bool from_float = !x.is_double();
  const Number scaled = (from_float ? ToDouble(x) : x) * std::ldexp(1.0, -kScaleBits);
  const Number high =
      scaled.FromBits(b_.CreateAnd(scaled.Bits(), scaled.BitsConstant(~((uint64_t{1} << 27) - 1))));
  const Number low = scaled - high;
  const uint64_t digits = from_float ? kDigitsForFloat : kTwoOverPi.size();
  llvm::Value* table = TwoOverPiTable(b_);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::Function* function = before->getParent();
  auto* loop = llvm::BasicBlock::Create(b_.getContext(), "reduce", function);
  auto* exit = llvm::BasicBlock::Create(b_.getContext(), "reduced", function);
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* digit = b_.CreatePHI(b_.getInt64Ty(), 2);
  llvm::PHINode* sum_phi = b_.CreatePHI(scaled.type(), 2);
  llvm::PHINode* lost_phi = b_.CreatePHI(scaled.type(), 2);
  Number sum = scaled.Of(sum_phi);
  Number lost = scaled.Of(lost_phi);
  llvm::Value* value =
      b_.CreateLoad(b_.getDoubleTy(), b_.CreateGEP(b_.getDoubleTy(), table, digit));
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(scaled.type())) {
    value = b_.CreateVectorSplat(vector->getNumElements(), value);
  }
  for (const Number& part : {high, low}) {
    const Number product = part * scaled.Of(value);
    const Number term = Fma(RoundEven(product * 0.25), -4.0, product);
    const Number next = sum + term;
    const Number moved = next - sum;
    lost = lost + ((sum - (next - moved)) + (term - moved));
    sum = Fma(RoundEven(next * 0.25), -4.0, next);
  }
  llvm::Value* next_digit = b_.CreateAdd(digit, b_.getInt64(1));
  digit->addIncoming(b_.getInt64(0), before);
  digit->addIncoming(next_digit, loop);
  for (const auto& [phi, number] : {std::pair(sum_phi, sum), std::pair(lost_phi, lost)}) {
    phi->addIncoming(scaled.Constant(0).v, before);
    phi->addIncoming(number.v, loop);
  }
  b_.CreateCondBr(b_.CreateICmpULT(next_digit, b_.getInt64(digits)), loop, exit);
  b_.SetInsertPoint(exit);
  const Number n = RoundEven(sum);
  const Number turns = (sum - n) + lost;
  const Number rest = Fma(turns, kHalfPiDouble[0], turns * kHalfPiDouble[1]);
  llvm::Value* quadrant = (n + 0x1.8p52).Bits();
  if (!from_float) return {quadrant, rest};
  return {b_.CreateTrunc(quadrant, x.BitsType()), ToFloat(rest)};
}

// The usual way for all lanes; the long one, behind a branch, for those that need it.
VectorMath::Reduced VectorMath::ReduceHalfPi(const Number& x) {
  const Reduced usual = ReduceSmall(x);
  llvm::Value* large = Greater(Abs(x), x.is_double() ? kSmallDouble : kSmallFloat);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* slow = llvm::BasicBlock::Create(b_.getContext(), "large", before->getParent());
  auto* merge = llvm::BasicBlock::Create(b_.getContext(), "any", before->getParent());
  b_.CreateCondBr(AnyLane(large), slow, merge);
  b_.SetInsertPoint(slow);
  Reduced all = ReduceLarge(x);
  all.rest = Select(large, all.rest, usual.rest);
  all.quadrant = b_.CreateSelect(large, all.quadrant, usual.quadrant);
  llvm::BasicBlock* end = b_.GetInsertBlock();
  b_.CreateBr(merge);
  b_.SetInsertPoint(merge);
  llvm::PHINode* rest = b_.CreatePHI(x.type(), 2);
  rest->addIncoming(usual.rest.v, before);
  rest->addIncoming(all.rest.v, end);
  llvm::PHINode* quadrant = b_.CreatePHI(x.BitsType(), 2);
  quadrant->addIncoming(usual.quadrant, before);
  quadrant->addIncoming(all.quadrant, end);
  return {quadrant, x.Of(rest)};
}

// The exponent of a positive number as an integer; subnormal numbers included.
llvm::Value* VectorMath::ExponentOf(const Number& x) {
  llvm::Value* subnormal = Less(x, 0x1p-1022);
  const Number normal = Select(subnormal, x * 0x1p54, x);
  llvm::Value* exponent = b_.CreateLShr(normal.Bits(), x.BitsConstant(52));
  return b_.CreateSub(exponent, b_.CreateSelect(subnormal, x.BitsConstant(54), x.BitsConstant(0)));
}

// Long division: takes off multiples of y * 2^k whose quotient has at most 22 bits, so that every
// step is exact; one step unless x / y is above 2^21.
Number VectorMath::FmodDouble(const Number& x, const Number& y) {
  const Number divisor = Abs(y);
  const Number start = Abs(x);
  llvm::Value* valid =
      b_.CreateAnd(Greater(divisor, 0), Less(start, std::numeric_limits<double>::infinity()));
  const Number first = Select(valid, start, x.Constant(0));
  llvm::BasicBlock* before = b_.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(b_.getContext(), "divide", before->getParent());
  auto* exit = llvm::BasicBlock::Create(b_.getContext(), "divided", before->getParent());
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* phi = b_.CreatePHI(x.type(), 2);
  const Number rest = x.Of(phi);
  llvm::Value* shift =
      b_.CreateSub(b_.CreateSub(ExponentOf(rest), ExponentOf(divisor)), x.BitsConstant(20));
  shift = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, shift, x.BitsConstant(0));
  // A small integer as a double: added to the low bits of a large one.
  const Number exponent = x.FromBits(b_.CreateAdd(shift, x.Constant(0x1.8p52).Bits())) - 0x1.8p52;
  const Number step = ScaleByPowerOfTwo(divisor, exponent);
  const Number quotient = Truncated(rest / step);
  Number next = Fma(quotient, -step, rest);
  next = Select(Less(next, 0.0), next + step, next);
  next = Select(Less(rest, divisor), rest, next);
  phi->addIncoming(first.v, before);
  phi->addIncoming(next.v, loop);
  llvm::Value* more = b_.CreateAnd(b_.CreateNot(Less(next, divisor)), valid);
  b_.CreateCondBr(AnyLane(more), loop, exit);
  b_.SetInsertPoint(exit);
  return Select(valid, CopySign(next, x), x.Constant(std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace hone::codegen
