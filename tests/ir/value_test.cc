#include "ir/value.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "base/core/random.h"
#include "ir/integer.h"

namespace hone::ir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

int64_t Int(BinaryOp op, DType dtype, int64_t a, int64_t b) {
  return Apply(op, dtype, {.i = a}, {.i = b}).i;
}
double Float(BinaryOp op, double a, double b) {
  return Apply(op, DType::kF32, {.f = a}, {.f = b}).f;
}

// What C++ computes in the type itself, which wraps for unsigned and, through unsigned, for signed
// types.
template <typename T>
void CheckAgainstNativeType(DType dtype) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE(std::string(ToString(dtype)) + " seed " + std::to_string(kSeed));
  Random random(kSeed);
  using U = std::make_unsigned_t<T>;
  for (int i = 0; i < 3000; ++i) {
    const bool small = random.Chance(0.5);
    const T a = static_cast<T>(small ? random.Between(-4, 9) : static_cast<int64_t>(random.Next()));
    const T b = static_cast<T>(small ? random.Between(-4, 9) : static_cast<int64_t>(random.Next()));
    const auto x = static_cast<int64_t>(a);
    const auto y = static_cast<int64_t>(b);
    const auto same = [](T value) { return static_cast<int64_t>(value); };
    const U ua = static_cast<U>(a), ub = static_cast<U>(b);
    ASSERT_EQ(Int(BinaryOp::kAdd, dtype, x, y), same(static_cast<T>(static_cast<U>(ua + ub))));
    ASSERT_EQ(Int(BinaryOp::kSub, dtype, x, y), same(static_cast<T>(static_cast<U>(ua - ub))));
    ASSERT_EQ(Int(BinaryOp::kMul, dtype, x, y),
              same(static_cast<T>(static_cast<U>(static_cast<uint64_t>(ua) * ub))));
    ASSERT_EQ(Int(BinaryOp::kMin, dtype, x, y), same(std::min(a, b)));
    ASSERT_EQ(Int(BinaryOp::kMax, dtype, x, y), same(std::max(a, b)));
    ASSERT_EQ(Int(BinaryOp::kAnd, dtype, x, y), same(static_cast<T>(a & b)));
    ASSERT_EQ(Int(BinaryOp::kXor, dtype, x, y), same(static_cast<T>(a ^ b)));
    ASSERT_EQ(Int(BinaryOp::kLt, dtype, x, y), a < b);
    ASSERT_EQ(Int(BinaryOp::kGe, dtype, x, y), a >= b);
    ASSERT_EQ(Int(BinaryOp::kEq, dtype, x, y), a == b);
    if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) continue;
    ASSERT_EQ(Int(BinaryOp::kTruncDiv, dtype, x, y), same(static_cast<T>(a / b)));
    ASSERT_EQ(Int(BinaryOp::kTruncMod, dtype, x, y), same(static_cast<T>(a % b)));
    const T remainder = static_cast<T>(Int(BinaryOp::kMod, dtype, x, y));
    ASSERT_TRUE(remainder == 0 || (remainder < 0) == (b < 0)) << "sign of the divisor";
    const auto quotient = static_cast<U>(Int(BinaryOp::kDiv, dtype, x, y));
    ASSERT_EQ(static_cast<T>(
                  static_cast<U>(static_cast<uint64_t>(quotient) * ub + static_cast<U>(remainder))),
              a);
  }
}

TEST(ValueTest, IntegersAreThoseOfTheMachine) {
  CheckAgainstNativeType<int8_t>(DType::kI8);
  CheckAgainstNativeType<uint8_t>(DType::kU8);
  CheckAgainstNativeType<int16_t>(DType::kI16);
  CheckAgainstNativeType<uint16_t>(DType::kU16);
  CheckAgainstNativeType<int32_t>(DType::kI32);
  CheckAgainstNativeType<uint32_t>(DType::kU32);
  CheckAgainstNativeType<int64_t>(DType::kI64);
  CheckAgainstNativeType<uint64_t>(DType::kU64);
}

TEST(ValueTest, IntegerEdgesNeverTrap) {
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(Int(BinaryOp::kDiv, DType::kI64, lowest, -1), lowest);
  EXPECT_EQ(Int(BinaryOp::kMod, DType::kI64, lowest, -1), 0);
  EXPECT_EQ(Int(BinaryOp::kTruncDiv, DType::kI8, -128, -1), -128);
  EXPECT_EQ(Int(BinaryOp::kDiv, DType::kI32, 7, 0), 0);
  EXPECT_EQ(Int(BinaryOp::kMod, DType::kI32, 7, 0), 7);
  EXPECT_EQ(Int(BinaryOp::kTruncMod, DType::kU64, -1, 0), -1);
  EXPECT_EQ(Int(BinaryOp::kShl, DType::kI32, 1, 31), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(Int(BinaryOp::kShl, DType::kI32, 1, 32), 0);
  EXPECT_EQ(Int(BinaryOp::kShr, DType::kI32, -8, 1), -4);
  EXPECT_EQ(Int(BinaryOp::kShr, DType::kI32, -8, 99), -1);
  EXPECT_EQ(Int(BinaryOp::kShr, DType::kU8, 200, 3), 25);
  EXPECT_EQ(Int(BinaryOp::kShr, DType::kU64, -1, 63), 1);
  EXPECT_EQ(Int(BinaryOp::kPow, DType::kI32, -3, 3), -27);
  EXPECT_EQ(Int(BinaryOp::kPow, DType::kI32, 2, -1), 0);
  EXPECT_EQ(Int(BinaryOp::kPow, DType::kI64, -1, -3), -1);
  EXPECT_EQ(Apply(UnaryOp::kAbs, DType::kI8, {.i = -128}).i, -128);
  EXPECT_EQ(Apply(UnaryOp::kNot, DType::kU8, {.i = 1}).i, 254);
  EXPECT_EQ(Apply(UnaryOp::kNot, DType::kBool, {.i = 1}).i, 0);
  EXPECT_EQ(Apply(UnaryOp::kSign, DType::kI32, {.i = -5}).i, -1);
  EXPECT_EQ(Apply(UnaryOp::kSign, DType::kU64, {.i = -5}).i, 1);
}

TEST(ValueTest, FloatOperatorsOnSpecialValues) {
  EXPECT_EQ(Float(BinaryOp::kMod, -7, 3), 2);
  EXPECT_EQ(Float(BinaryOp::kMod, 7, -3), -2);
  EXPECT_EQ(Float(BinaryOp::kTruncMod, -7, 3), -1);
  EXPECT_EQ(Float(BinaryOp::kTruncDiv, -7, 2), -3);
  EXPECT_EQ(Float(BinaryOp::kDiv, 1, 0), kInf);
  EXPECT_TRUE(std::isnan(Float(BinaryOp::kMax, std::nan(""), 1)));
  EXPECT_TRUE(std::isnan(Float(BinaryOp::kMin, 1, std::nan(""))));
  EXPECT_EQ(Apply(UnaryOp::kRound, DType::kF32, {.f = 2.5}).f, 2);
  EXPECT_EQ(Apply(UnaryOp::kRound, DType::kF32, {.f = 3.5}).f, 4);
  EXPECT_EQ(Apply(UnaryOp::kRound, DType::kF32, {.f = -0.5}).f, 0);
  EXPECT_EQ(Apply(UnaryOp::kSign, DType::kF32, {.f = -3}).f, -1);
  EXPECT_TRUE(std::isnan(Apply(UnaryOp::kSign, DType::kF32, {.f = std::nan("")}).f));
  EXPECT_EQ(Apply(UnaryOp::kIsInf, DType::kF32, {.f = -kInf}).i, 1);
  EXPECT_EQ(Apply(UnaryOp::kIsNan, DType::kF32, {.f = 0}).i, 0);
  EXPECT_EQ(Apply(BinaryOp::kLt, DType::kF32, {.f = std::nan("")}, {.f = 1}).i, 0);
  EXPECT_EQ(Apply(BinaryOp::kGe, DType::kF32, {.f = std::nan("")}, {.f = 1}).i, 0);
  EXPECT_EQ(Apply(BinaryOp::kNe, DType::kF32, {.f = std::nan("")}, {.f = std::nan("")}).i, 1);
}

TEST(ValueTest, CastsTruncateSaturateAndWrap) {
  const auto from_float = [](double f, DType to) { return ApplyCast(DType::kF32, to, {.f = f}).i; };
  EXPECT_EQ(from_float(-3.9, DType::kI32), -3);
  EXPECT_EQ(from_float(300, DType::kU8), 255);
  EXPECT_EQ(from_float(-1, DType::kU8), 0);
  EXPECT_EQ(from_float(kInf, DType::kI64), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(from_float(std::nan(""), DType::kI32), 0);
  EXPECT_EQ(from_float(std::nan(""), DType::kBool), 1) << "NaN is not 0";
  EXPECT_EQ(from_float(0.25, DType::kBool), 1);
  EXPECT_EQ(from_float(1.8e19, DType::kU64), static_cast<int64_t>(18000000000000000000ULL));
  EXPECT_EQ(ApplyCast(DType::kI32, DType::kI8, {.i = 200}).i, -56);
  EXPECT_EQ(ApplyCast(DType::kI8, DType::kU32, {.i = -1}).i, 0xffffffff);
  EXPECT_EQ(ApplyCast(DType::kI32, DType::kBool, {.i = 256}).i, 1);
  EXPECT_EQ(ApplyCast(DType::kU64, DType::kF64, {.i = -1}).f, 18446744073709551615.0);
  EXPECT_EQ(
      ApplyCast(DType::kI64, DType::kF32, {.i = (int64_t{1} << 54) + (int64_t{1} << 30) + 1}).f,
      0x1p54 + 0x1p31)
      << "one rounding, not two";
  EXPECT_EQ(ApplyCast(DType::kF32, DType::kF16, {.f = 2049}).f, 2048);
}

TEST(ValueTest, ExactArithmeticHasNoBound) {
  const Value three{.f = 3};
  EXPECT_EQ(Apply(BinaryOp::kMul, DType::kF32, three, three).bound, 0);
  EXPECT_GT(Apply(BinaryOp::kDiv, DType::kF32, {.f = 1}, three).bound, 0);
  SumOf sum(DType::kF32);
  for (int i = 0; i < 1000; ++i) sum.Add({.f = static_cast<double>(i)});
  EXPECT_EQ(sum.Result().f, 499500);
  EXPECT_EQ(sum.Result().bound, 0);
}

TEST(ValueTest, CloseCallsShowInTheBound) {
  const Value near{.f = 1, .bound = 0.01};
  const Value one{.f = 1.005};
  EXPECT_EQ(Apply(BinaryOp::kLt, DType::kF32, near, one).bound, 1);
  EXPECT_EQ(Apply(BinaryOp::kLt, DType::kF32, near, {.f = 2}).bound, 0);
  const Value unsure = Apply(BinaryOp::kLt, DType::kF32, near, one);
  EXPECT_EQ(ApplySelect(DType::kF32, unsure, {.f = 5}, {.f = 7}).bound, 2);
  EXPECT_EQ(Apply(UnaryOp::kFloor, DType::kF32, near).bound, 1);
  EXPECT_EQ(Apply(UnaryOp::kFloor, DType::kF32, {.f = 1.5, .bound = 0.01}).bound, 0);
  EXPECT_EQ(ApplyCast(DType::kF32, DType::kU8, {.f = 2.999, .bound = 0.01}).bound, 1);
  EXPECT_EQ(Apply(BinaryOp::kAnd, DType::kBool, unsure, {.i = 0}).bound, 0);
  EXPECT_EQ(Apply(BinaryOp::kAnd, DType::kBool, unsure, {.i = 1}).bound, 1);
}

// Float code must lie within the bound; checked against this machine's float arithmetic.
TEST(ValueTest, BoundsHoldForFloatArithmetic) {
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  const std::vector<std::pair<UnaryOp, float (*)(float)>> functions = {
      {UnaryOp::kSqrt, [](float x) { return std::sqrt(std::fabs(x)); }},
      {UnaryOp::kExp, [](float x) { return std::exp(x); }},
      {UnaryOp::kTanh, [](float x) { return std::tanh(x); }},
      {UnaryOp::kErf, [](float x) { return std::erf(x); }},
      {UnaryOp::kSin, [](float x) { return std::sin(x); }},
      {UnaryOp::kSigmoid, [](float x) { return 1.0F / (1.0F + std::exp(-x)); }},
      {UnaryOp::kAtan, [](float x) { return std::atan(x); }},
      {UnaryOp::kAsinh, [](float x) { return std::asinh(x); }}};
  int inexact = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto a = static_cast<float>(random.Uniform() * 8 - 4);
    const auto b = static_cast<float>(random.Uniform() * 8 - 4);
    const auto c = static_cast<float>(random.Uniform() * 8 - 4);
    const auto& [op, function] = functions[random.Below(functions.size())];
    const auto of = [](float x) { return Value{.f = static_cast<double>(x)}; };
    Value v =
        Apply(BinaryOp::kAdd, DType::kF32, Apply(BinaryOp::kMul, DType::kF32, of(a), of(b)), of(c));
    if (op == UnaryOp::kSqrt) v = Apply(UnaryOp::kAbs, DType::kF32, v);
    v = Apply(BinaryOp::kDiv, DType::kF32, Apply(op, DType::kF32, v), of(c));
    const float product = a * b;
    const float sum = product + c;
    const float result = function(sum) / c;
    ASSERT_LE(std::fabs(static_cast<double>(result) - v.f), v.bound)
        << ToString(op) << " of " << a << " * " << b << " + " << c;
    inexact += static_cast<double>(result) != v.f ? 1 : 0;
    ASSERT_LT(v.bound, 1e-2 * std::fabs(v.f) + 1e-3) << "a bound this loose checks nothing";
  }
  EXPECT_GT(inexact, 10000);
}

TEST(ValueTest, SumBoundHoldsAndFindsALostTerm) {
  constexpr uint64_t kSeed = 6;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int n : {2, 10, 100, 4608}) {
    for (int round = 0; round < 20; ++round) {
      SumOf sum(DType::kF32);
      float naive = 0;
      for (int i = 0; i < n; ++i) {
        const auto x = static_cast<float>(random.Uniform());
        naive += x;
        sum.Add({.f = static_cast<double>(x)});
      }
      const Value result = sum.Result();
      ASSERT_LE(std::fabs(static_cast<double>(naive) - result.f), result.bound) << n;
      ASSERT_LT(result.bound, 0.25) << "half of an average term";
    }
  }
}

}  // namespace
}  // namespace hone::ir
