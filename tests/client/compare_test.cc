#include "client/compare.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace hone::client {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

graph::TensorData Floats(const std::vector<double>& values) {
  return *graph::MakeConstant(ir::DType::kF32, {static_cast<int64_t>(values.size())}, values);
}

TEST(CompareTest, AllowsAShareOfTheLargestAndOfTheValue) {
  const Tolerance tolerance = {.absolute = 0.01, .relative = 0.1};
  // Allowed: 0.01 * 100 + 0.1 * |e| = 1, 2, 11.
  const auto expected = Floats({0, 10, -100});
  EXPECT_TRUE(CompareTensors(Floats({0.5, 11.5, -110}), expected, tolerance).ok());
  const Comparison wrong = CompareTensors(Floats({1.5, 12.5, -100}), expected, tolerance);
  EXPECT_EQ(wrong.differing, 2);
  EXPECT_EQ(wrong.worst, 0);
  EXPECT_EQ(wrong.worst_value, 1.5);
  EXPECT_EQ(wrong.worst_expected, 0);
  EXPECT_NEAR(wrong.worst_share, 1.5, 1e-6);
  EXPECT_NEAR(wrong.max_difference, 2.5, 1e-6);
}

TEST(CompareTest, NanEqualsOnlyNanAndInfinityOnlyItself) {
  EXPECT_TRUE(CompareTensors(Floats({kNan, kInfinity, 1}), Floats({kNan, kInfinity, 1}), {}).ok());
  EXPECT_EQ(CompareTensors(Floats({kNan, 1}), Floats({1, 1}), {}).differing, 1);
  EXPECT_EQ(CompareTensors(Floats({1, 1}), Floats({kNan, 1}), {}).differing, 1);
  EXPECT_EQ(CompareTensors(Floats({-kInfinity, 1}), Floats({kInfinity, 1}), {}).differing, 1);
  // An infinite expected value does not widen what is allowed elsewhere.
  EXPECT_EQ(CompareTensors(Floats({kInfinity, 2}), Floats({kInfinity, 1}), {}).differing, 1);
}

TEST(CompareTest, NothingIsAllowedWhereAllIsZero) {
  EXPECT_TRUE(CompareTensors(Floats({0, 0}), Floats({0, -0.0}), {}).ok());
  const Comparison wrong = CompareTensors(Floats({0, 1e-30}), Floats({0, 0}), {});
  EXPECT_EQ(wrong.differing, 1);
  EXPECT_EQ(wrong.worst, 1);
}

TEST(CompareTest, IntegersMustBeEqual) {
  const auto big = graph::MakeInt64s({2}, {1000000, 7});
  EXPECT_TRUE(CompareTensors(*big, *big, {}).ok());
  const Comparison wrong = CompareTensors(*graph::MakeInt64s({2}, {1000000, 8}), *big, {});
  EXPECT_EQ(wrong.differing, 1);
  EXPECT_EQ(wrong.worst, 1);
  EXPECT_EQ(wrong.worst_value, 8);
}

TEST(CompareTest, EightBitIntegersMayBeOneStepApart) {
  for (const ir::DType dtype : {ir::DType::kI8, ir::DType::kU8}) {
    const Tolerance tolerance = DefaultTolerance(dtype);
    const auto expected = graph::MakeConstant(dtype, {3}, {3, 100, 0});
    EXPECT_TRUE(
        CompareTensors(*graph::MakeConstant(dtype, {3}, {4, 99, 1}), *expected, tolerance).ok());
    const Comparison wrong =
        CompareTensors(*graph::MakeConstant(dtype, {3}, {3, 102, 0}), *expected, tolerance);
    EXPECT_EQ(wrong.differing, 1);
    EXPECT_EQ(wrong.worst, 1);
    EXPECT_EQ(
        CompareTensors(*graph::MakeConstant(dtype, {3}, {4, 100, 0}), *expected, {0, 0}).differing,
        1);
  }
  const auto truth = graph::MakeConstant(ir::DType::kBool, {2}, {1, 0});
  EXPECT_EQ(CompareTensors(*graph::MakeConstant(ir::DType::kBool, {2}, {1, 1}), *truth, {1, 1, 1})
                .differing,
            1);
}

// Two programs that round a product of n factors at each step and at the end.
TEST(CompareTest, NarrowFloatsMayBeAFewOfTheirStepsApart) {
  EXPECT_EQ(DefaultTolerance(ir::DType::kF32), (Tolerance{1e-4, 1e-3}));
  for (const auto& [dtype, step] :
       {std::pair(ir::DType::kF16, 0x1p-10), std::pair(ir::DType::kBF16, 0x1p-7)}) {
    const auto made = [&, dtype = dtype](double value) {
      return graph::MakeConstant(dtype, {2}, {value, 8});
    };
    const Tolerance tolerance = DefaultTolerance(dtype);
    EXPECT_TRUE(CompareTensors(*made(1 + 4 * step), *made(1), tolerance).ok());
    EXPECT_FALSE(CompareTensors(*made(1 + 32 * step), *made(1), tolerance).ok());
    EXPECT_FALSE(CompareTensors(*made(1 + 32 * step), *made(1), {}).ok());
  }
}

TEST(CompareTest, EmptyTensorsAreEqual) {
  EXPECT_TRUE(CompareTensors(Floats({}), Floats({}), {}).ok());
}

TEST(CompareTest, NamesElements) {
  EXPECT_EQ(IndexText(23, {2, 3, 4}), "[1, 2, 3]");
  EXPECT_EQ(IndexText(0, {}), "[]");
}

}  // namespace
}  // namespace hone::client
