#include "ir/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/core/random.h"

namespace hone::ir {
namespace {

TEST(HalfTest, KnownValues) {
  EXPECT_EQ(F16FromDouble(1.0), 0x3c00);
  EXPECT_EQ(F16FromDouble(-2.0), 0xc000);
  EXPECT_EQ(F16FromDouble(65504.0), 0x7bff);
  EXPECT_EQ(F16FromDouble(65519.99), 0x7bff);
  EXPECT_EQ(F16FromDouble(65520.0), 0x7c00) << "the tie at the top goes to infinity";
  EXPECT_EQ(F16FromDouble(0x1p-24), 0x0001);
  EXPECT_EQ(F16FromDouble(0x1p-25), 0x0000) << "the tie at the bottom goes to zero";
  EXPECT_EQ(F16FromDouble(0x1.8p-25), 0x0001);
  EXPECT_EQ(F16FromDouble(-0.0), 0x8000);
  EXPECT_EQ(BF16FromDouble(1.0), 0x3f80);
  EXPECT_EQ(BF16FromDouble(3.140625), 0x4049);
  EXPECT_EQ(BF16FromDouble(3.4e38), 0x7f80);
  EXPECT_EQ(F16FromDouble(std::nan("")), 0x7e00);
  EXPECT_EQ(BF16FromDouble(std::nan("")), 0x7fc0);
}

TEST(HalfTest, EveryPatternReadsBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto pattern = static_cast<uint16_t>(bits);
    const double f16 = F16ToDouble(pattern);
    const double bf16 = BF16ToDouble(pattern);
    if (std::isnan(f16)) {
      ASSERT_EQ(pattern & 0x7c00, 0x7c00);
    } else {
      ASSERT_EQ(F16FromDouble(f16), pattern);
    }
    if (std::isnan(bf16)) {
      ASSERT_EQ(pattern & 0x7f80, 0x7f80);
    } else {
      ASSERT_EQ(BF16FromDouble(bf16), pattern);
    }
    // bfloat16 is the upper half of a float.
    const auto upper = std::bit_cast<float>(bits << 16);
    ASSERT_TRUE(std::isnan(upper) ? std::isnan(bf16) : static_cast<double>(upper) == bf16);
  }
}

TEST(HalfTest, BetweenNeighboursTheNearerWinsAndTiesGoToEven) {
  const auto check = [](auto from, auto to, uint16_t largest) {
    for (uint16_t low = 0; low < largest; ++low) {
      const auto high = static_cast<uint16_t>(low + 1);
      const double a = to(low);
      const double b = to(high);
      const double middle = (a + b) / 2;
      ASSERT_LT(a, b);
      ASSERT_EQ(from(middle), low % 2 == 0 ? low : high) << low;
      ASSERT_EQ(from(std::nextafter(middle, 0.0)), low);
      ASSERT_EQ(from(std::nextafter(middle, b)), high);
      ASSERT_EQ(from(-middle), (low % 2 == 0 ? low : high) | 0x8000);
    }
  };
  check(F16FromDouble, F16ToDouble, 0x7bff);
  check(BF16FromDouble, BF16ToDouble, 0x7f7f);
}

TEST(HalfTest, AgreesWithTheCompilersHalfType) {
  constexpr uint64_t kSeed = 3;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int i = 0; i < 200000; ++i) {
    const double value =
        std::ldexp(random.Uniform() * 2 - 1, static_cast<int>(random.Between(-30, 20)));
    ASSERT_EQ(F16FromDouble(value), std::bit_cast<uint16_t>(static_cast<_Float16>(value))) << value;
  }
}

TEST(HalfTest, HalfUlpIsHalfTheGap) {
  EXPECT_EQ(HalfUlp(DType::kF32, 1.0), 0x1p-24);
  EXPECT_EQ(HalfUlp(DType::kF32, 0.0), 0x1p-150);
  EXPECT_EQ(HalfUlp(DType::kF16, 1.0), 0x1p-11);
  EXPECT_EQ(HalfUlp(DType::kBF16, 4.0), 0x1p-6);
  EXPECT_EQ(HalfUlp(DType::kF64, 1.0), 0x1p-53);
  EXPECT_EQ(HalfUlp(DType::kF32, std::numeric_limits<double>::infinity()), 0);
}

}  // namespace
}  // namespace hone::ir
