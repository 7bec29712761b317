#include "ir/index/interval.h"

#include "gtest/gtest.h"

namespace hone::ir {
namespace {

constexpr int64_t kInfinite = Interval::kInfinite;

TEST(IntervalTest, SumsAndProductsHoldEveryPair) {
  for (const Interval a : {Interval{-3, 2}, Interval{0, 4}, Interval{-5, -1}}) {
    for (const Interval b : {Interval{-2, 3}, Interval{1, 6}, Interval{-4, -4}}) {
      Interval sum = {kInfinite, -kInfinite}, product = sum;
      for (int64_t x = a.low; x <= a.high; ++x) {
        for (int64_t y = b.low; y <= b.high; ++y) {
          sum = Hull(sum, {x + y, x + y});
          product = Hull(product, {x * y, x * y});
        }
      }
      EXPECT_EQ(a + b, sum);
      EXPECT_EQ(a * b, product);
    }
  }
}

TEST(IntervalTest, NoBoundStaysNoBound) {
  const Interval any;
  EXPECT_EQ(any + (Interval{7, 7}), any);
  EXPECT_EQ((Interval{7, 7}) + any, any);
  EXPECT_EQ(any * (Interval{-2, 2}), any);
  EXPECT_EQ((Interval{kInfinite - 1, kInfinite - 1}) * (Interval{1, 9}),
            (Interval{kInfinite - 1, kInfinite}));
  EXPECT_FALSE(any.IsBounded());
  EXPECT_FALSE((Interval{0, kInfinite}).IsBounded());
  EXPECT_TRUE((Interval{0, 0}).IsBounded());
}

TEST(IntervalTest, DtypesHaveTheirValues) {
  EXPECT_EQ(IntervalOf(DType::kBool), (Interval{0, 1}));
  EXPECT_EQ(IntervalOf(DType::kI8), (Interval{-128, 127}));
  EXPECT_EQ(IntervalOf(DType::kU32), (Interval{0, UINT32_MAX}));
  EXPECT_EQ(IntervalOf(DType::kU64), (Interval{0, kInfinite}));
  EXPECT_EQ(IntervalOf(DType::kI64), Interval());
}

TEST(IntervalTest, DivisionsRoundDown) {
  for (int64_t a = -20; a <= 20; ++a) {
    for (int64_t b = 1; b <= 7; ++b) {
      const int64_t quotient = FloorDivInt(a, b), rest = FloorModInt(a, b);
      EXPECT_EQ(quotient * b + rest, a);
      EXPECT_TRUE(rest >= 0 && rest < b) << a << " " << b;
    }
  }
}

}  // namespace
}  // namespace hone::ir
