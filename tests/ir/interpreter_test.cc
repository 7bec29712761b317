#include "ir/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/core/random.h"
#include "ir/text.h"

namespace hone::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

Workload Parsed(const std::string& body) {
  absl::StatusOr<Workload> w = ParseWorkload("workload 1\n" + body);
  EXPECT_TRUE(w.ok()) << w.status();
  return w.ok() ? *w : Workload();
}

std::vector<InterpretedTensor> Outputs(const std::string& body,
                                       const std::vector<TensorBuffer>& arguments) {
  absl::StatusOr<std::vector<InterpretedTensor>> outputs = RunWorkload(Parsed(body), arguments);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *outputs : std::vector<InterpretedTensor>(4);
}

TensorBuffer F32(std::vector<int64_t> shape, const std::vector<double>& values) {
  return TensorBuffer::Of(DType::kF32, std::move(shape), values);
}
TensorBuffer I64(std::vector<int64_t> shape, const std::vector<double>& values) {
  return TensorBuffer::Of(DType::kI64, std::move(shape), values);
}

TensorBuffer RandomF32(std::vector<int64_t> shape, Random* random) {
  TensorBuffer t = TensorBuffer::Zeros(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < t.NumElements(); ++i) {
    t.Set(i, ElementOf(DType::kF32, random->Uniform() * 2 - 1));
  }
  return t;
}

TEST(InterpreterTest, MatmulBiasReluByHand) {
  const auto out = Outputs(
      "x0: f32[2,3] input range(-1,1)\n"
      "x1: f32[3,2] constant\n"
      "x2: f32[2] constant\n"
      "s0: f32[2,2] = sum[r0:3] (x0[i0, r0] * x1[r0, i1])\n"
      "s1: f32[2,2] output = max(s0[i0, i1] + x2[i1], 0.0)\n",
      {F32({2, 3}, {1, 2, 3, 4, 5, 6}), F32({3, 2}, {1, 0, 0, 1, 1, -1}), F32({2}, {0.5, -8})});
  EXPECT_THAT(out[0].values, ElementsAre(4.5, 0, 10.5, 0));
  EXPECT_THAT(out[0].bounds, ElementsAre(0, 0, 0, 0)) << "these sums are exact in any order";
  EXPECT_EQ(out[0].tensor.DoubleAt(2), 10.5);
}

TEST(InterpreterTest, PaddedConvolutionByHand) {
  const auto out = Outputs(
      "x0: f32[1,3,3,1] input range(-1,1)\n"
      "x1: f32[3,3] constant\n"
      "s0: f32[1,3,3,1] output = sum[r0:3,r1:3] (select(i1 + r0 - 1 >= 0 & i1 + r0 - 1 < 3 & "
      "i2 + r1 - 1 >= 0 & i2 + r1 - 1 < 3, x0[i0, i1 + r0 - 1, i2 + r1 - 1, i3], 0.0) * x1[r0, "
      "r1])\n",
      {F32({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), F32({3, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 1})});
  EXPECT_THAT(out[0].values, ElementsAre(12, 21, 16, 27, 45, 33, 24, 39, 28));
}

TEST(InterpreterTest, ArgReductionsBreakTiesByIndex) {
  const std::vector<TensorBuffer> x = {F32({1, 5}, {3, 7, 1, 7, 1})};
  const auto run = [&x](const std::string& combiner) {
    const auto out = Outputs(
        "x0: f32[1,5] input range(-9,9)\ns0: f32[1] output, s0.1: i64[1] output = " + combiner +
            "[r0:5] (x0[i0, r0], r0)\n",
        x);
    return std::vector<double>{out[0].values[0], out[1].values[0]};
  };
  EXPECT_THAT(run("argmax"), ElementsAre(7, 1));
  EXPECT_THAT(run("argmax_last"), ElementsAre(7, 3));
  EXPECT_THAT(run("argmin"), ElementsAre(1, 2));
  EXPECT_THAT(run("argmin_last"), ElementsAre(1, 4));
}

TEST(InterpreterTest, EveryCombiner) {
  const std::vector<TensorBuffer> x = {F32({4}, {2, -3, 4, 1})};
  const auto run = [&x](const std::string& right) {
    return Outputs("x0: f32[4] input range(-9,9)\ns0: f32[] output = " + right + "\n", x)[0]
        .values[0];
  };
  EXPECT_EQ(run("sum[r0:4] (x0[r0])"), 4);
  EXPECT_EQ(run("product[r0:4] (x0[r0])"), -24);
  EXPECT_EQ(run("min[r0:4] (x0[r0])"), -3);
  EXPECT_EQ(run("max[r0:4] (x0[r0])"), 4);
  const auto both = Outputs(
      "x0: f32[4] input range(-9,9)\n"
      "s0: f32[] output, s0.1: f32[] output = sum_sumsq[r0:4] (x0[r0], x0[r0] * x0[r0])\n",
      x);
  EXPECT_THAT(both[0].values, ElementsAre(4));
  EXPECT_THAT(both[1].values, ElementsAre(30));
  const auto any = Outputs(
      "x0: f32[4] input range(-9,9)\n"
      "s0: bool[] output = max[r0:4] (x0[r0] > 3.0)\n"
      "s1: bool[] output = min[r0:4] (x0[r0] > 3.0)\n",
      x);
  EXPECT_THAT(any[0].values, ElementsAre(1));
  EXPECT_THAT(any[1].values, ElementsAre(0));
}

TEST(InterpreterTest, ScanCarriesEarlierIterations) {
  // Fibonacci: two carried iterations back, then a cumulative sum that is read at its last element.
  const auto out = Outputs(
      "s0: i64[8] output scan 0 = select(i0 >= 2, s0[i0 - 1] + s0[i0 - 2], i0)\n"
      "s1: i64[8] scan 1 = select(i0 >= 1, s1[i0 - 1], 0) + s0[i0]\n"
      "s2: i64[] output = s1[7]\n",
      {});
  EXPECT_THAT(out[0].values, ElementsAre(0, 1, 1, 2, 3, 5, 8, 13));
  EXPECT_THAT(out[1].values, ElementsAre(33));
}

TEST(InterpreterTest, ScanOfTwoStagesWithContraction) {
  // h[t] = W h[t-1] + x[t], y[t] = 2 h[t]; W swaps the two units.
  const auto out = Outputs(
      "x0: f32[3,2] input range(-1,1)\n"
      "x1: f32[2,2] constant\n"
      "s0: f32[3,2] scan 0 = sum[r0:2] (x1[i1, r0] * select(i0 >= 1, s1[i0 - 1, r0], 0.0))\n"
      "s1: f32[3,2] output scan 0 = s0[i0, i1] + x0[i0, i1]\n"
      "s2: f32[3,2] output scan 0 = s1[i0, i1] * 2.0\n",
      {F32({3, 2}, {1, 0, 0, 0, 5, 0}), F32({2, 2}, {0, 1, 1, 0})});
  EXPECT_THAT(out[0].values, ElementsAre(1, 0, 0, 1, 6, 0));
  EXPECT_THAT(out[1].values, ElementsAre(2, 0, 0, 2, 12, 0));
}

TEST(InterpreterTest, GatherReadsIndicesAndRefusesBadOnes) {
  const std::string text =
      "x0: f32[3,2] constant\n"
      "x1: i64[2] input range(0,3)\n"
      "s0: f32[2,2] output = x0[x1[i0], i1]\n";
  // Arguments: inputs first, then constants.
  const TensorBuffer table = F32({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(Outputs(text, {I64({2}, {2, 0}), table})[0].values, ElementsAre(5, 6, 1, 2));
  const auto bad = RunWorkload(Parsed(text), std::vector<TensorBuffer>{I64({2}, {2, 7}), table});
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("index 7 of dimension 0 of x0"));
}

TEST(InterpreterTest, StoreMapsPlaceTheirPoints) {
  // Depth to space with blocks of 2.
  const auto out = Outputs(
      "x0: f32[1,1,2,4] input range(0,9)\n"
      "s0: f32[1,2,4,1] output over [i0:1,i1:1,i2:2,i3:4] at [i0, 2 * i1 + i3 // 2, 2 * i2 + i3 % "
      "2, 0] = "
      "x0[i0, i1, i2, i3]\n",
      {F32({1, 1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7})});
  EXPECT_THAT(out[0].values, ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
}

TEST(InterpreterTest, RoundsAtStoresAndCastsOnly) {
  const auto out = Outputs(
      "x0: f16[1] input range(-1,1)\n"
      "s0: f16[1] = x0[i0] + 1.0:f16\n"
      "s1: f16[1] output = s0[i0] - 1.0:f16\n"
      "s2: f16[1] output = x0[i0] + 1.0:f16 - 1.0:f16\n"
      "s3: f32[1] output = f32(f16(f32(x0[i0]) + 1.0)) - 1.0\n",
      {TensorBuffer::Of(DType::kF16, {1}, std::vector<double>{0x1p-12})});
  EXPECT_EQ(out[0].values[0], 0) << "1 + 2^-12 rounds to 1 when it is stored";
  EXPECT_EQ(out[1].values[0], 0x1p-12) << "inside a Stage nothing rounds";
  EXPECT_EQ(out[2].values[0], 0) << "a cast rounds";
  EXPECT_GE(out[1].bounds[0], 0x1p-12) << "code that rounds every operation is within the bound";
}

TEST(InterpreterTest, IntegersKeepTheirWidth) {
  const auto out = Outputs(
      "x0: u8[2] input range(0,256)\n"
      "x1: i8[2] input range(-128,128)\n"
      "s0: i32[] output = sum[r0:2] (i32(x0[r0]) * i32(x1[r0]))\n"
      "s1: u8[2] output = x0[i0] + 100:u8\n"
      "s2: u8[2] output = u8(max(min(round(f32(x1[i0]) / 3.0), 255.0), 0.0))\n",
      {TensorBuffer::Of(DType::kU8, {2}, std::vector<double>{200, 3}),
       TensorBuffer::Of(DType::kI8, {2}, std::vector<double>{-128, 127})});
  EXPECT_THAT(out[0].values, ElementsAre(-25600 + 381));
  EXPECT_THAT(out[1].values, ElementsAre(44, 103));
  EXPECT_THAT(out[2].values, ElementsAre(0, 42));
  EXPECT_THAT(out[2].bounds, ElementsAre(0, 0));
}

constexpr char kBlock[] =
    "x0: f32[6,10] input range(-1,1)\n"
    "x1: f32[10,7] constant\n"
    "s0: f32[6,7] = sum[r0:10] (x0[i0, r0] * x1[r0, i1])\n"
    "s1: f32[6] = max[r0:7] (s0[i0, r0])\n"
    "s2: f32[6,7] = exp(s0[i0, i1] - s1[i0])\n"
    "s3: f32[6] = sum[r0:7] (s2[i0, r0])\n"
    "s4: f32[7,6] output over [i0:6,i1:7] at [i1, i0] = s2[i0, i1] / s3[i0]\n"
    "s5: f32[5,6] scan 0 = select(i0 >= 1, s5[i0 - 1, i1], 0.0) * 0.5 + s1[i1]\n"
    "s6: f32[5,6] output = tanh(s5[i0, i1])\n";

TEST(InterpreterTest, PointsEqualTheWhole) {
  constexpr uint64_t kSeed = 17;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  const Workload w = Parsed(kBlock);
  const std::vector<TensorBuffer> arguments = {RandomF32({6, 10}, &random),
                                               RandomF32({10, 7}, &random)};
  const auto whole = RunWorkload(w, arguments);
  ASSERT_TRUE(whole.ok()) << whole.status();
  for (int output = 0; output < 2; ++output) {
    const InterpretedTensor& all = (*whole)[static_cast<size_t>(output)];
    std::vector<int64_t> points;
    for (int k = 0; k < 15; ++k) {
      points.push_back(
          static_cast<int64_t>(random.Below(static_cast<uint64_t>(all.tensor.NumElements()))));
    }
    const auto values = EvaluatePoints(w, arguments, output, points);
    ASSERT_TRUE(values.ok()) << values.status();
    for (size_t k = 0; k < points.size(); ++k) {
      EXPECT_EQ((*values)[k].value, all.values[static_cast<size_t>(points[k])]);
      EXPECT_EQ((*values)[k].bound, all.bounds[static_cast<size_t>(points[k])]);
    }
  }
}

TEST(InterpreterTest, FloatCodeLiesWithinTheBounds) {
  constexpr uint64_t kSeed = 18;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  const std::vector<TensorBuffer> arguments = {RandomF32({6, 10}, &random),
                                               RandomF32({10, 7}, &random)};
  const auto out = Outputs(kBlock, arguments);
  const auto x = [&](int i, int k) {
    return static_cast<float>(arguments[0].DoubleAt(i * 10 + k));
  };
  const auto y = [&](int k, int j) { return static_cast<float>(arguments[1].DoubleAt(k * 7 + j)); };
  for (int i = 0; i < 6; ++i) {
    float row[7];
    float largest = -1e30F;
    for (int j = 0; j < 7; ++j) {
      row[j] = 0;
      for (int k = 0; k < 10; ++k) row[j] += x(i, k) * y(k, j);
      largest = std::max(largest, row[j]);
    }
    float total = 0;
    for (float& value : row) total += value = std::exp(value - largest);
    for (int j = 0; j < 7; ++j) {
      const auto at = static_cast<size_t>(j * 6 + i);
      EXPECT_NEAR(out[0].values[at], static_cast<double>(row[j] / total), out[0].bounds[at]);
      EXPECT_LT(out[0].bounds[at], 1e-5 * out[0].values[at] + 1e-6);
    }
  }
}

TEST(InterpreterTest, BigWorkloadsAreSampledQuickly) {
  // 3x3 convolution 256@56 of two layers: 2 · 231 M multiply-adds as a whole.
  const Workload w = Parsed(
      "x0: f32[1,56,56,256] input range(-1,1)\n"
      "x1: f32[256,3,3,256] constant\n"
      "s0: f32[1,56,56,256] = sum[r0:3,r1:3,r2:256] (select(i1 + r0 >= 1 & i1 + r0 < 57 & i2 + r1 "
      ">= 1 & "
      "i2 + r1 < 57, x0[i0, i1 + r0 - 1, i2 + r1 - 1, r2], 0.0) * x1[i3, r0, r1, r2])\n"
      "s1: f32[1,56,56,256] output = max(s0[i0, i1, i2, i3], 0.0)\n");
  Random random(1);
  const std::vector<TensorBuffer> arguments = {RandomF32({1, 56, 56, 256}, &random),
                                               RandomF32({256, 3, 3, 256}, &random)};
  const std::vector<int64_t> points = {0, 56 * 56 * 256 - 1, 12345, 12345};
  const auto values = EvaluatePoints(w, arguments, 0, points);
  ASSERT_TRUE(values.ok()) << values.status();
  double corner = 0;
  for (int dy = 0; dy < 2; ++dy) {
    for (int dx = 0; dx < 2; ++dx) {
      for (int c = 0; c < 256; ++c) {
        corner += arguments[0].DoubleAt((dy * 56 + dx) * 256 + c) *
                  arguments[1].DoubleAt(((0 * 3 + dy + 1) * 3 + dx + 1) * 256 + c);
      }
    }
  }
  EXPECT_NEAR((*values)[0].value, std::max(corner, 0.0), 1e-6 * std::fabs(corner) + 1e-6);
  EXPECT_EQ((*values)[2].value, (*values)[3].value);
}

TEST(InterpreterTest, ArgumentsMustFit) {
  const Workload w = Parsed("x0: f32[2] input range(-1,1)\ns0: f32[2] output = x0[i0]\n");
  EXPECT_FALSE(RunWorkload(w, {}).ok());
  EXPECT_FALSE(RunWorkload(w, std::vector<TensorBuffer>{F32({3}, {1, 2, 3})}).ok());
  EXPECT_FALSE(RunWorkload(w, std::vector<TensorBuffer>{I64({2}, {1, 2})}).ok());
  EXPECT_TRUE(RunWorkload(w, std::vector<TensorBuffer>{F32({2}, {1, 2})}).ok());
}

TEST(InterpreterTest, ElementsThatNobodyStoresAreAnError) {
  const Workload w = Parsed("s0: f32[4] output over [i0:2] at [2 * i0] = 1.0\n");
  EXPECT_THAT(std::string(RunWorkload(w, {}).status().message()),
              HasSubstr("2 elements of s0 are never stored"));
  const std::vector<int64_t> unset = {1};
  EXPECT_FALSE(EvaluatePoints(w, {}, 0, unset).ok());
  const std::vector<int64_t> set = {2};
  EXPECT_TRUE(EvaluatePoints(w, {}, 0, set).ok());
}

}  // namespace
}  // namespace hone::ir
