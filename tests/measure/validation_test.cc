#include "measure/validation.h"

#include <cmath>
#include <limits>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "ir/text.h"

namespace hone::measure {
namespace {

using ::testing::HasSubstr;

ir::Workload Parse(const char* text) {
  absl::StatusOr<ir::Workload> workload = ir::ParseWorkload(text);
  EXPECT_TRUE(workload.ok()) << workload.status();
  return *std::move(workload);
}

constexpr auto kDefault = ir::AccuracyClass::kDefault;
constexpr auto kStrict = ir::AccuracyClass::kStrict;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// An output of the given values, its reference and a comparison of another.
class Compared {
 public:
  Compared(ir::DType dtype, std::vector<double> values)
      : tensor_(ir::TensorBuffer::Of(dtype, {static_cast<int64_t>(values.size())}, values)) {
    ReferenceOutput output{.dtype = dtype, .shape = tensor_.shape, .bytes = tensor_.bytes};
    for (const double value : values) {
      if (std::isfinite(value)) output.max_abs = std::max(output.max_abs, std::abs(value));
    }
    reference_ = {output};
  }

  absl::Status With(int64_t index, double value, ir::AccuracyClass accuracy) {
    ir::TensorBuffer other = tensor_;
    other.Set(index, ir::ElementOf(tensor_.dtype, value));
    const std::span<const std::byte> bytes = std::as_bytes(std::span(other.bytes));
    return CompareOutputs(reference_, {&bytes, 1}, accuracy);
  }

  /// The outputs of a part of the work that wrote these elements, in bytes that it touched.
  absl::StatusOr<int64_t> Part(std::vector<std::pair<int64_t, double>> written,
                               std::vector<ByteRange> touched) {
    ir::TensorBuffer other = ir::TensorBuffer::Zeros(tensor_.dtype, tensor_.shape);
    for (const auto& [index, value] : written)
      other.Set(index, ir::ElementOf(tensor_.dtype, value));
    const std::span<const std::byte> bytes = std::as_bytes(std::span(other.bytes));
    return ComparePart(reference_, {&bytes, 1}, {std::move(touched)}, kDefault);
  }

  std::vector<ReferenceOutput>& reference() { return reference_; }

 private:
  ir::TensorBuffer tensor_;
  std::vector<ReferenceOutput> reference_;
};

TEST(ValidationTest, TolerancesAreThoseOfTheClass) {
  // A = 1e-4 of the largest magnitude 100, R = 1e-3 of the value: 0.012 at 2; strict 0.0012.
  Compared compared(ir::DType::kF32, {1, 2, -100, 0});
  EXPECT_TRUE(compared.With(1, 2.0119, kDefault).ok());
  EXPECT_FALSE(compared.With(1, 2.0121, kDefault).ok());
  EXPECT_FALSE(compared.With(1, 1.9879, kDefault).ok());
  EXPECT_TRUE(compared.With(1, 2.00119, kStrict).ok());
  EXPECT_FALSE(compared.With(1, 2.00121, kStrict).ok());
  EXPECT_TRUE(compared.With(3, 0.0099, kDefault).ok());
}

TEST(ValidationTest, TheFirstWrongElementIsNamed) {
  Compared compared(ir::DType::kF32, {1, 2, -100, 0});
  EXPECT_THAT(compared.With(2, 5, kDefault).ToString(),
              HasSubstr("1 of 4 elements of output 0 are wrong; element 2 is 5, the default "
                        "schedule gives -100"));
}

TEST(ValidationTest, WhatWasNotWrittenIsWrong) {
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kF64, ir::DType::kF16}) {
    Compared compared(dtype, {1, 0});
    EXPECT_FALSE(compared.With(1, kNan, kDefault).ok());
    EXPECT_FALSE(compared.With(0, kInf, kDefault).ok());
  }
}

TEST(ValidationTest, OfAPartWhatItWroteIsCompared) {
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kF16, ir::DType::kI32}) {
    SCOPED_TRACE(static_cast<int>(dtype));
    Compared compared(dtype, {1, 2, 0, 4, 5, 6});
    const int64_t size = ir::SizeOf(dtype);
    const std::vector<ByteRange> touched = {{0, 2 * size}, {4 * size, 6 * size}};
    EXPECT_EQ(compared.Part({{0, 1}, {4, 5}, {5, 6}}, touched).value(), 3);
    EXPECT_EQ(compared.Part({}, touched).value(), 0) << "zeros were not written";
    EXPECT_EQ(compared.Part({{0, 1}}, {}).value(), 0) << "nothing was touched";
    const auto wrong = compared.Part({{0, 1}, {5, 7}}, touched);
    ASSERT_FALSE(wrong.ok());
    EXPECT_THAT(wrong.status().message(), HasSubstr("element 5 of output 0 is 7"));
  }
  // NaN is right where the default gives it.
  Compared compared(ir::DType::kF32, {1, kNan});
  EXPECT_EQ(compared.Part({{0, 1}, {1, kNan}}, {{0, 8}}).value(), 2);
  EXPECT_FALSE(compared.Part({{0, kNan}}, {{0, 8}}).ok());
}

TEST(ValidationTest, NanAndInfinitiesEqualThemselves) {
  Compared compared(ir::DType::kF32, {1, kNan, kInf, -kInf});
  EXPECT_TRUE(compared.With(0, 1, kDefault).ok());
  EXPECT_FALSE(compared.With(1, 0, kDefault).ok());
  EXPECT_FALSE(compared.With(2, 3e38, kDefault).ok());
  EXPECT_FALSE(compared.With(3, kInf, kDefault).ok());
}

TEST(ValidationTest, IntegersAreExactUnlessFloatsChoseThem) {
  Compared compared(ir::DType::kI32, std::vector<double>(2000, 7));
  EXPECT_FALSE(compared.With(5, 8, kDefault).ok());
  compared.reference()[0].flips = 1e-3;
  EXPECT_TRUE(compared.With(5, 8, kDefault).ok());
}

TEST(ValidationTest, ReferencesKnowWhetherFloatsAreFolded) {
  const ir::Workload rounded = Parse(
      "workload 1\n"
      "x0: f32[8,4] input range(-1,1)\n"
      "s0: f32[8] = sum[r0:4] (x0[i0, r0])\n"
      "s1: bool[8] output = s0[i0] > 0.0\n");
  const ir::Workload exact = Parse(
      "workload 1\n"
      "x0: f32[8] input range(-1,1)\n"
      "s0: bool[8] output = x0[i0] > 0.0\n");
  const std::vector<std::byte> bytes(8);
  const std::span<const std::byte> output(bytes);
  EXPECT_GT(MakeReference(rounded, {&output, 1})[0].flips, 0);
  EXPECT_EQ(MakeReference(exact, {&output, 1})[0].flips, 0);
}

TEST(ValidationTest, SamplePointsHaveTheCornersAndBothSidesOfTails) {
  const std::vector<int64_t> points = SamplePoints({50, 7}, 64, 3);
  const std::set<int64_t> distinct(points.begin(), points.end());
  EXPECT_EQ(distinct.size(), points.size());
  EXPECT_EQ(points[0], 0);
  EXPECT_EQ(points[1], 349);
  std::set<int64_t> rows;
  for (const int64_t point : points) {
    ASSERT_GE(point, 0);
    ASSERT_LT(point, 350);
    rows.insert(point / 7);
  }
  EXPECT_TRUE(rows.contains(47) && rows.contains(48)) << "the tail of 16 at 50";
  EXPECT_EQ(SamplePoints({}, 8, 3), std::vector<int64_t>{0});
  EXPECT_TRUE(SamplePoints({0, 4}, 8, 3).empty());
  EXPECT_EQ(SamplePoints({3}, 8, 3).size(), 3u);
}

TEST(ValidationTest, TheOracleFindsAWrongDefault) {
  const ir::Workload workload = Parse(
      "workload 1\n"
      "x0: f32[4,3] input range(-1,1)\n"
      "s0: f32[4] output = sum[r0:3] (x0[i0, r0])\n");
  const std::vector<double> x = {1, 2, 3, 0.25, 0.5, 1, -1, 1, 0, 4, 4, 4};
  const std::vector<ir::TensorBuffer> arguments = {
      ir::TensorBuffer::Of(ir::DType::kF32, {4, 3}, x)};
  std::vector<double> sums = {6, 1.75, 0, 12};
  const std::vector<int64_t> points = {0, 1, 2, 3};
  const auto check = [&] {
    const ir::TensorBuffer made = ir::TensorBuffer::Of(ir::DType::kF32, {4}, sums);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(made.bytes));
    return CheckWithOracle(MakeReference(workload, {&bytes, 1})[0], 0, points,
                           *ir::EvaluatePoints(workload, arguments, 0, points), kDefault);
  };
  EXPECT_TRUE(check().ok()) << check();
  sums[1] = 1.8;
  EXPECT_EQ(check().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(check().ToString(), HasSubstr("element 1 of output 0 is 1.7999"));
  sums[1] = kNan;
  EXPECT_FALSE(check().ok());
}

}  // namespace
}  // namespace hone::measure
