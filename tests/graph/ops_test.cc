#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "graph/op.h"
#include "ir/interpreter.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ir/workload_builder.h"

// The Stages that operators express: schedules and sketches rely on these forms.
namespace hone::graph {
namespace {

using ir::DType;
using Ints = std::vector<int64_t>;

/// The canonical Workload of one call on f32 inputs of these shapes (an empty optional: absent).
std::string Expressed(const std::string& op, const Attributes& attributes,
                      const std::vector<TensorType>& inputs, int num_outputs = 1) {
  OpCall call{.op = op, .origin = "n", .attributes = &attributes, .num_outputs = num_outputs};
  ir::WorkloadBuilder builder;
  std::vector<int> tensors;
  for (const TensorType& type : inputs) {
    call.inputs.push_back({.present = true, .type = type});
    tensors.push_back(builder.AddInput(type.dtype, type.shape));
  }
  const auto types = InferTypes(call);
  if (!types.ok()) return types.status().ToString();
  const auto outputs = FindOp(op)->express(call, builder, tensors);
  if (!outputs.ok()) return outputs.status().ToString();
  for (int i = 0; i < num_outputs; ++i) builder.MarkOutput((*outputs)[static_cast<size_t>(i)]);
  const ir::Workload workload = builder.Finish().workload;
  const absl::Status verified = ir::Verify(workload);
  return verified.ok() ? ToText(workload) : verified.ToString();
}

TensorType F32(Ints shape) { return {DType::kF32, std::move(shape)}; }

Attributes ConvAttributes(const std::string& layout, int64_t group) {
  return {{"strides", Ints{1, 1}},
          {"dilations", Ints{1, 1}},
          {"pads", Ints{1, 1, 1, 1}},
          {"group", group},
          {"layout", layout}};
}

TEST(OpsTest, ConvolutionPadsContractsAndAddsItsBias) {
  EXPECT_EQ(
      Expressed("Conv", ConvAttributes("nchw", 1),
                {F32({1, 3, 8, 8}), F32({4, 3, 3, 3}), F32({4})}),
      "workload 1\n"
      "x0: f32[1,3,8,8] input range(-1,1)\n"
      "x1: f32[4,3,3,3] input range(-1,1)\n"
      "x2: f32[4] input range(-1,1)\n"
      "s0: f32[1,3,10,10] = select(i2 - 1 >= 0 & i2 - 1 < 8 & (i3 - 1 >= 0 & i3 - 1 < 8), x0[i0, "
      "i1, i2 - 1, i3 - 1], 0.0)\n"
      "s1: f32[1,4,8,8] = sum[r0:3,r1:3,r2:3] (s0[i0, r0, i2 + r1, i3 + r2] * x1[i1, r0, r1, r2])\n"
      "s2: f32[1,4,8,8] output = s1[i0, i1, i2, i3] + x2[i1]\n");
  EXPECT_EQ(Expressed("Conv", ConvAttributes("nhwc", 1), {F32({1, 8, 8, 3}), F32({4, 3, 3, 3})}),
            "workload 1\n"
            "x0: f32[1,8,8,3] input range(-1,1)\n"
            "x1: f32[4,3,3,3] input range(-1,1)\n"
            "s0: f32[1,10,10,3] = select(i1 - 1 >= 0 & i1 - 1 < 8 & (i2 - 1 >= 0 & i2 - 1 < 8), "
            "x0[i0, i1 - 1, i2 - 1, i3], 0.0)\n"
            "s1: f32[1,8,8,4] output = sum[r0:3,r1:3,r2:3] (s0[i0, i1 + r0, i2 + r1, r2] * x1[i3, "
            "r2, r0, r1])\n");
}

TEST(OpsTest, GroupsKeepOneChannelAxisAndDepthwiseHasNoChannelReduction) {
  EXPECT_EQ(Expressed("Conv", ConvAttributes("nchw", 2), {F32({1, 4, 8, 8}), F32({6, 2, 3, 3})}),
            "workload 1\n"
            "x0: f32[1,4,8,8] input range(-1,1)\n"
            "x1: f32[6,2,3,3] input range(-1,1)\n"
            "s0: f32[1,4,10,10] = select(i2 - 1 >= 0 & i2 - 1 < 8 & (i3 - 1 >= 0 & i3 - 1 < 8), "
            "x0[i0, i1, i2 - 1, i3 - 1], 0.0)\n"
            "s1: f32[1,6,8,8] output = sum[r0:2,r1:3,r2:3] (s0[i0, i1 // 3 * 2 + r0, i2 + r1, i3 + "
            "r2] * x1[i1, r0, r1, r2])\n");
  EXPECT_EQ(Expressed("Conv", ConvAttributes("nchw", 4), {F32({1, 4, 8, 8}), F32({4, 1, 3, 3})}),
            "workload 1\n"
            "x0: f32[1,4,8,8] input range(-1,1)\n"
            "x1: f32[4,1,3,3] input range(-1,1)\n"
            "s0: f32[1,4,10,10] = select(i2 - 1 >= 0 & i2 - 1 < 8 & (i3 - 1 >= 0 & i3 - 1 < 8), "
            "x0[i0, i1, i2 - 1, i3 - 1], 0.0)\n"
            "s1: f32[1,4,8,8] output = sum[r0:3,r1:3] (s0[i0, i1, i2 + r0, i3 + r1] * x1[i1, 0, "
            "r0, r1])\n");
}

TEST(OpsTest, MatrixProductIsOneSumOfProducts) {
  EXPECT_EQ(Expressed("MatMul", {{"transpose_b", int64_t{1}}}, {F32({2, 5, 7}), F32({4, 7})}),
            "workload 1\n"
            "x0: f32[2,5,7] input range(-1,1)\n"
            "x1: f32[4,7] input range(-1,1)\n"
            "s0: f32[2,5,4] output = sum[r0:7] (x0[i0, i1, r0] * x1[i2, r0])\n");
}

TEST(OpsTest, AveragePoolingDividesByExactCounts) {
  EXPECT_EQ(
      Expressed(
          "Pool",
          {{"kind", "average"}, {"kernel", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{1, 1}}},
          {F32({1, 2, 9})}),
      "workload 1\n"
      "x0: f32[1,2,9] input range(-1,1)\n"
      "s0: f32[1,2,11] = select(i2 - 1 >= 0 & i2 - 1 < 9, x0[i0, i1, i2 - 1], 0.0)\n"
      "s1: f32[1,2,5] = sum[r0:3] (s0[i0, i1, i2 * 2 + r0])\n"
      "s2: f32[1,2,5] output = s1[i0, i1, i2] / f32(max(min(10 - i2 * 2, 3), 0) - max(min(1 - i2 * "
      "2, 3), 0))\n");
}

TEST(OpsTest, SoftmaxIsMaxExponentialSumAndProduct) {
  EXPECT_EQ(Expressed("Softmax", {{"axis", int64_t{1}}}, {F32({4, 10})}),
            "workload 1\n"
            "x0: f32[4,10] input range(-1,1)\n"
            "s0: f32[4] = max[r0:10] (x0[i0, r0])\n"
            "s1: f32[4,10] = exp(x0[i0, i1] - s0[i0])\n"
            "s2: f32[4] = sum[r0:10] (s1[i0, r0])\n"
            "s3: f32[4,10] output = s1[i0, i1] * (1.0 / s2[i0])\n");
}

TEST(OpsTest, NormalisationCentresBeforeItSquares) {
  EXPECT_EQ(
      Expressed("Normalise", {{"axes", Ints{1}}, {"epsilon", 1e-5}},
                {F32({4, 10}), F32({10}), F32({10})}),
      "workload 1\n"
      "x0: f32[4,10] input range(-1,1)\n"
      "x1: f32[10] input range(-1,1)\n"
      "x2: f32[10] input range(-1,1)\n"
      "s0: f32[4] = sum[r0:10] (x0[i0, r0])\n"
      "s1: f32[4] = sum[r0:10] ((x0[i0, r0] - s0[i0] / 10.0) * (x0[i0, r0] - s0[i0] / 10.0))\n"
      "s2: f32[4,10] output = (x0[i0, i1] - s0[i0] / 10.0) * rsqrt(s1[i0] / 10.0 + 1e-05) * x1[i1] "
      "+ x2[i1]\n");
}

TEST(OpsTest, TransposedConvolutionHasOnePhasePerStride) {
  EXPECT_EQ(Expressed("ConvTranspose", {{"strides", Ints{2}}}, {F32({1, 3, 5}), F32({3, 4, 2})}),
            "workload 1\n"
            "x0: f32[1,3,5] input range(-1,1)\n"
            "x1: f32[3,4,2] input range(-1,1)\n"
            "s0: f32[1,4,5,2] = sum[r0:3,r1:1] (x0[i0, r0, i2] * x1[r0, i1, r1 * 2 + i3])\n"
            "s1: f32[1,4,10] output = s0[i0, i1, i2 // 2, i2 % 2]\n");
}

TEST(OpsTest, TransposedConvolutionComputesNoMoreThanItsOutput) {
  for (const int64_t pad : {0, 1, 2, 3}) {
    const std::string text =
        Expressed("ConvTranspose", {{"strides", Ints{2}}, {"pads", Ints{pad, pad}}},
                  {F32({1, 3, 8}), F32({3, 4, 4})});
    const std::string phases = "f32[1,4," + std::to_string(9 - pad) + ",2] = sum[";
    EXPECT_THAT(text, ::testing::HasSubstr(phases)) << "padding " << pad;
  }
}

TEST(OpsTest, LstmScansOverItsSteps) {
  EXPECT_EQ(Expressed("LSTM", {}, {F32({3, 1, 2}), F32({1, 8, 2}), F32({1, 8, 2})}, 2),
            "workload 1\n"
            "x0: f32[3,1,2] input range(-1,1)\n"
            "x1: f32[1,8,2] input range(-1,1)\n"
            "x2: f32[1,8,2] input range(-1,1)\n"
            "s0: f32[3,1,8] = sum[r0:2] (x0[i0, i1, r0] * x1[0, i2, r0])\n"
            "s1: f32[3,1,8] scan 0 = sum[r0:2] (select(i0 >= 1, s3[i0 - 1, i1, r0], 0.0) * x2[0, "
            "i2, r0])\n"
            "s2: f32[3,1,2] scan 0 = sigmoid(s0[i0, i1, i2 + 4] + s1[i0, i1, i2 + 4]) * select(i0 "
            ">= 1, s2[i0 - 1, i1, i2], 0.0) + sigmoid(s0[i0, i1, i2] + s1[i0, i1, i2]) * "
            "tanh(s0[i0, i1, i2 + 6] + s1[i0, i1, i2 + 6])\n"
            "s3: f32[3,1,2] scan 0 = sigmoid(s0[i0, i1, i2 + 2] + s1[i0, i1, i2 + 2]) * "
            "tanh(s2[i0, i1, i2])\n"
            "s4: f32[3,1,1,2] output = s3[i0, i2, i3]\n"
            "s5: f32[1,1,2] output = s3[2, i1, i2]\n");
}

// Along the first axis the scan makes the output itself; elsewhere a map puts the axis back.
TEST(OpsTest, ACumulativeSumAlongTheFirstAxisIsItsScan) {
  EXPECT_EQ(Expressed("CumSum", {{"axis", int64_t{0}}}, {F32({5, 4})}),
            "workload 1\n"
            "x0: f32[5,4] input range(-1,1)\n"
            "s0: f32[5,4] output scan 0 = select(i0 >= 1, s0[i0 - 1, i1], 0.0) + x0[i0, i1]\n");
  EXPECT_THAT(Expressed("CumSum", {{"axis", int64_t{0}}, {"reverse", int64_t{1}}}, {F32({5, 4})}),
              ::testing::HasSubstr("s1: f32[5,4] output = s0[4 - i0, i1]"));
}

TEST(OpsTest, ReshapeKeepsPlainIndicesOfAxesThatStay) {
  EXPECT_EQ(Expressed("Reshape", {{"shape", Ints{2, 3, 5}}}, {F32({6, 5})}),
            "workload 1\n"
            "x0: f32[6,5] input range(-1,1)\n"
            "s0: f32[2,3,5] output = x0[i0 * 3 + i1, i2]\n");
  EXPECT_EQ(Expressed("Reshape", {{"shape", Ints{1, 6, 5}}}, {F32({2, 3, 5})}),
            "workload 1\n"
            "x0: f32[2,3,5] input range(-1,1)\n"
            "s0: f32[1,6,5] output = x0[i1 // 3, i1 % 3, i2]\n");
}

/// The index that a call gives of each row of x.
std::vector<double> Places(const std::string& fn, bool last, DType dtype, Ints shape,
                           const std::vector<double>& x) {
  const Attributes attributes = {{"fn", fn}, {"axis", int64_t{1}}, {"select_last", int64_t{last}}};
  const auto workload = ir::ParseWorkload(Expressed("ArgReduce", attributes, {{dtype, shape}}));
  if (!workload.ok()) return {};
  const std::vector<ir::TensorBuffer> inputs = {ir::TensorBuffer::Of(dtype, shape, x)};
  const auto result = ir::RunWorkload(*workload, inputs);
  return result.ok() ? result->at(0).values : std::vector<double>();
}

// Long rows are two reductions: the value, and the first or last place where it stands. What they
// give is numpy's choice (which is also ONNX's reference): the first of equals, zeros of both signs
// are equal, a NaN is beyond all numbers, infinities are numbers.
TEST(OpsTest, TheIndexOfALongRowIsOfItsValue) {
  EXPECT_EQ(Expressed("ArgReduce", {{"fn", "max"}, {"axis", int64_t{1}}}, {F32({3, 50})}),
            "workload 1\n"
            "x0: f32[3,50] input range(-1,1)\n"
            "s0: f32[3,1] = max[r0:50] (x0[i0, r0])\n"
            "s1: i32[3,1] = min[r0:50] (select(x0[i0, r0] == s0[i0, i1] | isnan(x0[i0, r0]), "
            "i32(r0), 2147483647:i32))\n"
            "s2: i64[3,1] output = i64(s1[i0, i1])\n");
  EXPECT_THAT(Expressed("ArgReduce", {{"fn", "max"}, {"axis", int64_t{1}}}, {F32({3, 50, 2})}),
              ::testing::HasSubstr("argmax["));
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               inf = std::numeric_limits<double>::infinity();
  const auto row = [](double rest, const std::vector<std::pair<int, double>>& special) {
    std::vector<double> x(40, rest);
    for (const auto& [at, value] : special) x[static_cast<size_t>(at)] = value;
    return x;
  };
  struct Row {
    std::vector<double> x;
    double max, max_last, min, min_last;
  };
  const Row rows[] = {{row(1, {{7, 3}, {31, 3}, {12, -3}, {38, -3}}), 7, 31, 12, 38},
                      {row(1, {}), 0, 39, 0, 39},
                      {row(-1, {{5, -0.0}, {9, 0.0}, {22, -0.0}}), 5, 22, 0, 39},
                      {row(2, {{17, nan}, {30, nan}, {3, inf}, {4, -inf}}), 17, 30, 17, 30},
                      {row(-inf, {}), 0, 39, 0, 39},
                      {row(inf, {}), 0, 39, 0, 39},
                      {row(nan, {}), 0, 39, 0, 39}};
  for (const Row& r : rows) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kF64}) {
      const auto place = [&](const char* fn, bool last) {
        return Places(fn, last, dtype, {1, 40}, r.x);
      };
      EXPECT_THAT(place("max", false), ::testing::ElementsAre(r.max));
      EXPECT_THAT(place("max", true), ::testing::ElementsAre(r.max_last));
      EXPECT_THAT(place("min", false), ::testing::ElementsAre(r.min));
      EXPECT_THAT(place("min", true), ::testing::ElementsAre(r.min_last));
    }
  }
  EXPECT_THAT(Places("min", false, DType::kI8, {1, 40}, row(127, {{20, -128}, {21, -128}})),
              ::testing::ElementsAre(20));
}

TEST(OpsTest, EveryOperatorIsInferredAndEitherExpressedOrExtern) {
  for (const OpDefinition* op : AllOps()) {
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_NE(op->express == nullptr, op->extern_name.empty()) << op->name;
  }
}

/// A MatMulInteger of known operands, run by the interpreter.
std::vector<double> IntegerProduct(DType a, DType b, bool constant) {
  const Attributes none;
  OpCall call{.op = "MatMulInteger", .origin = "n", .attributes = &none};
  ir::WorkloadBuilder builder;
  std::vector<int> tensors;
  std::vector<ir::TensorBuffer> buffers;
  const auto add = [&](DType dtype, Ints shape, const std::vector<double>& values, bool known) {
    const ConstantPtr data = MakeConstant(dtype, shape, values);
    call.inputs.push_back(
        {.present = true, .type = data->type, .constant = known ? data : nullptr});
    tensors.push_back(known ? builder.AddConstant(dtype, shape) : builder.AddInput(dtype, shape));
    buffers.push_back(ir::TensorBuffer::Of(dtype, shape, values));
  };
  const double low = a == DType::kU8 ? 0 : -128;
  add(a, {2, 3}, {low, low + 255, low + 7, low + 200, low + 128, low + 1}, false);
  const double other = b == DType::kU8 ? 0 : -128;
  add(b, {3, 2}, {other + 255, other, other + 3, other + 129, other + 250, other + 127}, constant);
  add(a, {1}, {low + 19}, false);
  add(b, {2}, {other + 130, other + 2}, false);
  const auto outputs = FindOp("MatMulInteger")->express(call, builder, tensors);
  if (!outputs.ok()) return {};
  builder.MarkOutput((*outputs)[0]);
  const auto made = builder.Finish();
  std::vector<ir::TensorBuffer> arguments;
  for (const auto& ids : {made.workload.Inputs(), made.workload.Constants()}) {
    for (const int id : ids) {
      for (size_t k = 0; k < 4; ++k) {
        if (made.canonical[static_cast<size_t>(tensors[k])] == id) arguments.push_back(buffers[k]);
      }
    }
  }
  const auto results = ir::RunWorkload(made.workload, arguments);
  if (!results.ok()) return {};
  return (*results)[0].tensor.ToDoubles();
}

// One operand moves by 128 where both have one sign: the result stays.
TEST(OpsTest, IntegerProductsAreExactForAllSigns) {
  for (const DType a : {DType::kU8, DType::kI8}) {
    for (const DType b : {DType::kU8, DType::kI8}) {
      for (const bool constant : {false, true}) {
        // Σ (a - za)(b - zb), with all operands and zero points as distances from the lowest byte.
        const double x[2][3] = {{0, 255, 7}, {200, 128, 1}};
        const double w[3][2] = {{255, 0}, {3, 129}, {250, 127}};
        const double zw[2] = {130, 2};
        std::vector<double> expected(4);
        for (int i = 0; i < 2; ++i) {
          for (int j = 0; j < 2; ++j) {
            for (int k = 0; k < 3; ++k) expected[2 * i + j] += (x[i][k] - 19) * (w[k][j] - zw[j]);
          }
        }
        EXPECT_EQ(IntegerProduct(a, b, constant), expected)
            << ToString(a) << " " << ToString(b) << constant;
      }
    }
  }
}

}  // namespace
}  // namespace hone::graph
