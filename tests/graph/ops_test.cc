#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "graph/op.h"
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

TEST(OpsTest, EveryOperatorIsInferredAndEitherExpressedOrExtern) {
  for (const OpDefinition* op : AllOps()) {
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_NE(op->express == nullptr, op->extern_name.empty()) << op->name;
  }
}

}  // namespace
}  // namespace hone::graph
