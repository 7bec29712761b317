#include "graph/grouping.h"

#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/group_workload.h"
#include "graph/interpreter_evaluator.h"
#include "graph/pipeline.h"
#include "ir/text.h"
#include "tests/graph/passes/quantised_layer.h"
#include "tests/graph/passes/test_graph.h"

// Which nodes of well-known blocks become one kernel. The graphs go through the whole pipeline
// first.
namespace hone::graph {
namespace {

using testing::ExpectSame;
using testing::RandomInputs;
using testing::Renumbered;
using testing::RunGroups;
using testing::RunNodes;
using testing::TestGraph;
using testing::TestTarget;
using testing::Wrapped;
using Shape = std::vector<int64_t>;

std::vector<Group> GroupsAfterPipeline(Graph& graph) {
  InterpreterEvaluator evaluator;
  const auto reports = RunPipeline(graph, evaluator, TestTarget());
  HONE_CHECK(reports.ok()) << StatusMessage(reports.status());
  auto groups = GroupNodes(graph, TestTarget());
  HONE_CHECK(groups.ok()) << StatusMessage(groups.status());
  return *groups;
}

void ExpectGroups(const TestGraph& test, std::string_view after) {
  Graph graph = test.graph;
  const std::vector<Group> groups = GroupsAfterPipeline(graph);
  EXPECT_EQ("\n" + Wrapped(Renumbered(ToText(graph, groups))), after);
  const auto inputs = RandomInputs(test.graph, 11);
  ExpectSame(RunNodes(test.graph, inputs), RunGroups(graph, groups, inputs));
}

// The Workload of the group with this number.
void ExpectWorkload(const TestGraph& test, size_t number, std::string_view after) {
  Graph graph = test.graph;
  const std::vector<Group> groups = GroupsAfterPipeline(graph);
  const auto workload = BuildWorkload(graph, groups.at(number));
  ASSERT_TRUE(workload.ok()) << StatusMessage(workload.status());
  EXPECT_EQ("\n" + Wrapped(ir::ToText(workload->workload)), after);
}

ValueId Concat(TestGraph& t, ValueId a, ValueId b) {
  return t.Op("Concat", {a, b}, {{"axis", int64_t{1}}});
}

ValueId GlobalPool(TestGraph& t, ValueId x) {
  return t.Op("Reduce", {x},
              {{"fn", std::string("mean")}, {"axes", Shape{2, 3}}, {"keepdims", int64_t{1}}});
}

TestGraph ResNetBlocks() {
  TestGraph t;
  const ValueId x = t.Relu(t.Conv(t.Input({1, 3, 8, 8}), 4, 3, 2, 1));
  ValueId y = t.Relu(t.BatchNorm(t.Conv(x, 4, 3, 1, 1)));
  y = t.Relu(t.Binary("add", t.BatchNorm(t.Conv(y, 4, 3, 1, 1)), x));
  ValueId z = t.Relu(t.Conv(y, 8, 3, 2, 1));
  z = t.Conv(z, 8, 3, 1, 1);
  z = t.Relu(t.Binary("add", z, t.Conv(y, 8, 1, 2)));
  t.Output(t.Linear(t.Reshape(GlobalPool(t, z), {1, 8}), 5), "logits");
  return t;
}

TEST(GroupingTest, ResNetBlockAndDownSampling) {
  ExpectGroups(ResNetBlocks(), R"(
group 0 kernel anchor Conv: Transpose, Conv, Binary.max -> %0
group 1 kernel anchor Conv: Conv, Binary.max -> %1
group 2 kernel anchor Conv: Conv, Binary.add, Binary.max -> %2
group 3 kernel anchor Conv: Conv, Binary.max -> %3
group 4 kernel anchor Conv: Conv -> %4
group 5 kernel anchor Conv: Conv, Binary.add, Binary.max -> %5
group 6 kernel anchor Reduce: Reduce.mean -> %6
group 7 alias: Reshape -> %7
group 8 kernel anchor MatMul: MatMul, Binary.add -> %8
)");
}

TEST(GroupingTest, ResidualAdditionAndActivationFollowTheConvolution) {
  ExpectWorkload(ResNetBlocks(), 2, R"(
workload 1
x0: f32[1,4,4,4] input range(0,1)
x1: f32[4,4,3,3] constant
x2: f32[4] constant
x3: f32[1,4,4,4] input range(0,1)
s0: f32[1,6,6,4] = select(i1 - 1 >= 0 & i1 - 1 < 4 & (i2 - 1 >= 0 & i2 - 1 < 4), x0[0, i1 - 1,
    i2 - 1, i3], 0.0)
s1: f32[1,4,4,4] = sum[r0:3,r1:3,r2:4] (s0[0, i1 + r0, i2 + r1, r2] * x1[i3, r2, r0, r1])
s2: f32[1,4,4,4] = s1[i0, i1, i2, i3] + x2[i3]
s3: f32[1,4,4,4] = s2[i0, i1, i2, i3] + x3[i0, i1, i2, i3]
s4: f32[1,4,4,4] output = max(s3[i0, i1, i2, i3], 0.0)
)");
}

TEST(GroupingTest, DenseNetLayers) {
  TestGraph t;
  ValueId x = t.Relu(t.Conv(t.Input({1, 3, 6, 6}), 4, 3, 1, 1));
  for (int layer = 0; layer < 2; ++layer) {
    const ValueId narrow = t.Relu(t.BatchNorm(t.Conv(t.Relu(t.BatchNorm(x)), 8, 1)));
    x = Concat(t, x, t.Conv(narrow, 2, 3, 1, 1));
  }
  t.Output(GlobalPool(t, t.Relu(t.BatchNorm(x))), "pooled");
  ExpectGroups(t, R"(
group 0 kernel anchor Conv: Transpose, Conv, Binary.max, Binary.mul, Binary.add, Binary.max ->
    %0, %1
group 1 kernel anchor Conv: Conv, Binary.max -> %2
group 2 kernel anchor Conv: Conv -> %3
group 3 concat: Concat -> %4
group 4 kernel anchor Conv: Binary.mul, Binary.add, Binary.max, Conv, Binary.max -> %5
group 5 kernel anchor Conv: Conv -> %6
group 6 concat: Concat -> %7
group 7 kernel anchor Reduce: Binary.mul, Binary.add, Binary.max, Reduce.mean -> %8
group 8 alias: Reshape -> %9
)");
}

TEST(GroupingTest, SqueezeExcite) {
  TestGraph t;
  const ValueId x = t.Relu(t.Conv(t.Input({1, 4, 6, 6}), 8, 3, 1, 1, 1));
  const ValueId wide = t.Relu(t.Conv(x, 8, 3, 1, 1, 8));
  const ValueId squeezed = t.Relu(t.Conv(GlobalPool(t, wide), 2, 1));
  const ValueId gate = t.Unary("sigmoid", t.Conv(squeezed, 8, 1));
  t.Output(t.Conv(t.Binary("mul", gate, wide), 4, 1), "projected");
  ExpectGroups(t, R"(
group 0 kernel anchor Conv: Transpose, Conv, Binary.max -> %0
group 1 kernel anchor Conv: Conv, Binary.max -> %1
group 2 kernel anchor Reduce: Reduce.mean -> %2
group 3 kernel anchor Conv: Conv, Binary.max -> %3
group 4 kernel anchor Conv: Conv, Unary.sigmoid -> %4
group 5 kernel anchor Conv: Binary.mul, Conv, Transpose -> %5
)");
}

TestGraph BertBlock() {
  TestGraph t;
  const ValueId x = t.Input({1, 6, 8});
  const ValueId mask = t.Input({1, 1, 1, 6});
  const auto heads = [&](const Shape& perm) {
    return t.Transpose(t.Reshape(t.Linear(x, 8), {1, 6, 2, 4}), perm);
  };
  const ValueId q = heads({0, 2, 1, 3});
  const ValueId k = heads({0, 2, 3, 1});
  const ValueId v = heads({0, 2, 1, 3});
  const ValueId scores =
      t.Binary("add", t.Binary("div", t.Op("MatMul", {q, k}), t.Scalar(2)), mask);
  const ValueId soft = t.Op("Softmax", {scores}, {{"axis", int64_t{-1}}});
  const ValueId mixed = t.Reshape(t.Transpose(t.Op("MatMul", {soft, v}), {0, 2, 1, 3}), {1, 6, 8});
  const ValueId y = t.LayerNorm(t.Binary("add", t.Linear(mixed, 8), x));
  const ValueId wide = t.Linear(y, 16);
  const ValueId erf = t.Unary("erf", t.Binary("div", wide, t.Scalar(1.41421356)));
  const ValueId gelu =
      t.Binary("mul", t.Binary("mul", wide, t.Binary("add", erf, t.Scalar(1))), t.Scalar(0.5));
  t.Output(t.LayerNorm(t.Binary("add", t.Linear(gelu, 8), y)), "y");
  return t;
}

TEST(GroupingTest, BertBlockWithMergedQkv) {
  ExpectGroups(BertBlock(), R"(
group 0 kernel anchor MatMul: MatMul, Binary.add, Reshape, Transpose, Reshape, Transpose -> %0
group 1 alias: Slice -> %1
group 2 alias: Reshape -> %2
group 3 alias: Slice -> %3
group 4 alias: Reshape -> %4
group 5 alias: Slice -> %5
group 6 alias: Reshape -> %6
group 7 kernel anchor MatMul: MatMul, Binary.mul, Binary.add, Softmax -> %7
group 8 kernel anchor MatMul: MatMul, Transpose -> %8
group 9 alias: Reshape -> %9
group 10 kernel anchor MatMul: MatMul, Binary.add, Binary.add, Normalise.layer -> %10
group 11 kernel anchor MatMul: MatMul, Binary.add, Activation.gelu -> %11
group 12 kernel anchor MatMul: MatMul, Binary.add, Binary.add, Normalise.layer -> %12
)");
}

TEST(GroupingTest, MergedQkvIsStoredByHeads) {
  ExpectWorkload(BertBlock(), 0, R"(
workload 1
x0: f32[1,6,8] input range(-1,1)
x1: f32[8,24] constant
x2: f32[24] constant
s0: f32[1,6,24] = sum[r0:8] (x0[0, i1, r0] * x1[r0, i2])
s1: f32[3,1,2,6,4] output over [i0:1,i1:6,i2:24] at [i2 // 8, 0, i2 // 4 % 2, i1, i2 % 4] =
    s0[i0, i1, i2] + x2[i2]
)");
}

TEST(GroupingTest, PreNormResidualIsAFurtherOutput) {
  TestGraph t;
  const ValueId x = t.Input({1, 6, 8});
  const ValueId y = t.Binary("add", t.Linear(x, 8), x);
  t.Output(t.Binary("add", t.Linear(t.LayerNorm(y), 8), y), "y");
  ExpectGroups(t, R"(
group 0 kernel anchor MatMul: MatMul, Binary.add, Binary.add, Normalise.layer -> %0, %1
group 1 kernel anchor MatMul: MatMul, Binary.add, Binary.add -> %2
)");
}

TEST(GroupingTest, RowsTooLongForTheCacheStayApart) {
  TestGraph t;
  const ValueId x = t.Input({1, 2});
  // 22,000 floats · 4 bytes · 6 = 528,000 bytes: more than half of 1 MiB.
  t.Output(t.Op("Softmax", {t.Op("MatMul", {x, t.Constant({2, 22000})})}, {{"axis", int64_t{1}}}),
           "y");
  ExpectGroups(t, R"(
group 0 kernel anchor MatMul: MatMul -> %0
group 1 kernel anchor Softmax: Softmax -> %1
)");
}

// What a quantised block adds is kept as bytes, and dequantised where it is added.
TEST(GroupingTest, QuantisedResidualsAreStoredAsBytes) {
  TestGraph t;
  const auto conv = [&](ValueId bytes) {
    const ValueId w = testing::Known(t, ir::DType::kI8, {8, 8, 1, 1}, -50, 37);
    return t.Op("Conv",
                {testing::FromBytes(t, bytes, 0.02, 3),
                 testing::Dequantise(t, w, kNoValue, t.Scalar(0.01))},
                {{"strides", Shape{1, 1}},
                 {"dilations", Shape{1, 1}},
                 {"pads", Shape{0, 0, 0, 0}},
                 {"group", int64_t{1}},
                 {"layout", std::string("nchw")}});
  };
  const ValueId skip = testing::Quantise(t, conv(t.Input({1, 8, 6, 6}, ir::DType::kU8)), 0.02, 3);
  const ValueId deep = testing::Quantise(t, conv(skip), 0.02, 3);
  const ValueId sum = t.Binary("add", conv(deep), testing::FromBytes(t, skip, 0.02, 3));
  t.Output(testing::Quantise(t, sum, 0.02, 3), "y");
  Graph graph = t.graph;
  const std::vector<Group> groups = GroupsAfterPipeline(graph);
  for (const Group& group : groups) {
    for (ValueId output : GroupOutputs(graph, graph.Readers(), group.nodes))
      EXPECT_EQ(graph.values[output].type.dtype, ir::DType::kU8) << ToText(graph, groups);
  }
  const auto inputs = RandomInputs(t.graph, 11);
  ExpectSame(RunNodes(t.graph, inputs), RunGroups(graph, groups, inputs));
}

TestGraph UNet() {
  TestGraph t;
  const ValueId skip = t.Relu(t.Conv(t.Input({1, 3, 8, 8}), 4, 3, 1, 1));
  const ValueId down = t.Op("Pool", {skip},
                            {{"kind", std::string("max")},
                             {"kernel", Shape{2, 2}},
                             {"strides", Shape{2, 2}},
                             {"dilations", Shape{1, 1}},
                             {"pads", Shape{0, 0, 0, 0}},
                             {"layout", std::string("nchw")}});
  const ValueId deep = t.Relu(t.Conv(down, 8, 3, 1, 1));
  const ValueId up = t.Op("ConvTranspose", {deep, t.Constant({8, 4, 2, 2}), t.Constant({4})},
                          {{"strides", Shape{2, 2}}, {"layout", std::string("nchw")}});
  t.Output(t.Relu(t.Conv(Concat(t, skip, up), 4, 3, 1, 1)), "y");
  return t;
}

TEST(GroupingTest, UNetSkip) {
  ExpectGroups(UNet(), R"(
group 0 kernel anchor Conv: Transpose, Conv, Binary.max -> %0
group 1 kernel anchor Pool: Pool.max -> %1
group 2 kernel anchor Conv: Conv, Binary.max -> %2
group 3 kernel anchor ConvTranspose: ConvTranspose -> %3
group 4 concat: Concat -> %4
group 5 kernel anchor Conv: Conv, Binary.max, Transpose -> %5
)");
}

TEST(GroupingTest, TransposedConvolutionsStoreByDepthToSpace) {
  ExpectWorkload(UNet(), 3, R"(
workload 1
x0: f32[1,4,4,8] input range(0,1)
x1: f32[8,4,2,2] constant
x2: f32[4] constant
s0: f32[1,4,4,2,2,4] = sum[r0:8] (x0[0, i1, i2, r0] * x1[r0, i5, i3, i4])
s1: f32[1,8,8,4] output over [i0:1,i1:4,i2:4,i3:2,i4:2,i5:4] at [0, i1 * 2 + i3, i2 * 2 + i4,
    i5] = s0[i0, i1, i2, i3, i4, i5] + x2[i5]
)");
}

TEST(GroupingTest, ASumFollowsTheOperandThatDoesNotComeBack) {
  // The last operand is made beside the first product, on which the second depends: a group of the
  // first product and the sum would not be convex.
  TestGraph t;
  const ValueId first = t.Op("MatMul", {t.Input({4, 4}), t.Constant({4, 4})});
  const ValueId second = t.Op("MatMul", {first, t.Constant({4, 4})});
  const ValueId side = t.Unary("tanh", first);
  t.Output(t.Binary("add", second, side), "y");
  ExpectGroups(t, R"(
group 0 kernel anchor MatMul: MatMul, Unary.tanh -> %0, %1
group 1 kernel anchor MatMul: MatMul, Binary.add -> %2
)");
}

TestGraph LstmLayers() {
  TestGraph t;
  ValueId x = t.Input({3, 1, 4});
  for (int layer = 0; layer < 2; ++layer) {
    const ValueId zero =
        t.graph.AddConstant(MakeConstant(ir::DType::kF32, {1, 1, 5}, {0, 0, 0, 0, 0}));
    const int64_t width = t.Shape(x).back();
    const auto outputs = t.Ops("LSTM",
                               {x, t.Constant({1, 20, width}), t.Constant({1, 20, 5}),
                                t.Constant({1, 40}), kNoValue, zero, zero},
                               3, {{"hidden_size", int64_t{5}}});
    x = t.Reshape(outputs[0], {3, 1, 5});
    t.Output(outputs[1], "h" + std::to_string(layer));
  }
  t.Output(t.Linear(x, 6), "y");
  return t;
}

TEST(GroupingTest, LstmLayersAreOneWorkloadEach) {
  ExpectGroups(LstmLayers(), R"(
group 0 kernel anchor LSTM: LSTM -> %0, %1
group 1 alias: Reshape -> %2
group 2 kernel anchor LSTM: LSTM -> %3, %4
group 3 alias: Reshape -> %5
group 4 kernel anchor MatMul: MatMul, Binary.add -> %6
)");
}

TEST(GroupingTest, AnLstmLayerHasItsProductOutsideTheScan) {
  ExpectWorkload(LstmLayers(), 0, R"(
workload 1
x0: f32[3,1,4] input range(-1,1)
x1: f32[1,20,4] constant
x2: f32[1,40] constant
x3: f32[1,1,5] constant
x4: f32[1,20,5] constant
s0: f32[3,1,20] = sum[r0:4] (x0[i0, 0, r0] * x1[0, i2, r0])
s1: f32[3,1,20] = s0[i0, i1, i2] + x2[0, i2] + x2[0, i2 + 20]
s2: f32[3,1,20] scan 0 = sum[r0:5] (select(i0 >= 1, s4[i0 - 1, i1, r0], x3[0, 0, r0]) * x4[0,
    i2, r0])
s3: f32[3,1,5] scan 0 = sigmoid(s1[i0, 0, i2 + 10] + s2[i0, i1, i2 + 10]) * select(i0 >= 1,
    s3[i0 - 1, i1, i2], x3[0, 0, i2]) + sigmoid(s1[i0, 0, i2] + s2[i0, i1, i2]) * tanh(s1[i0, 0,
    i2 + 15] + s2[i0, i1, i2 + 15])
s4: f32[3,1,5] scan 0 = sigmoid(s1[i0, 0, i2 + 5] + s2[i0, i1, i2 + 5]) * tanh(s3[i0, i1, i2])
s5: f32[3,1,1,5] output over [i0:3,i1:1,i2:5] at [i0, 0, 0, i2] = s4[i0, i1, i2]
s6: f32[1,1,5] output = s4[2, 0, i2]
)");
}

TEST(GroupingTest, ExpensiveProducersAreNotRepeated) {
  TestGraph t;
  const ValueId gate = t.Unary("tanh", t.Input({1, 3, 6, 6}));
  t.Output(t.Relu(t.Conv(gate, 4, 3, 1, 1)), "y");
  const ValueId cheap = t.Relu(t.Input({1, 3, 6, 6}));
  t.Output(t.Relu(t.Conv(cheap, 4, 3, 1, 1)), "z");
  ExpectGroups(t, R"(
group 0 kernel: Unary.tanh, Transpose -> %0
group 1 kernel anchor Conv: Conv, Binary.max, Transpose -> %1
group 2 kernel anchor Conv: Binary.max, Transpose, Conv, Binary.max, Transpose -> %2
)");
}

TEST(GroupingTest, ALayerNormOfPrimitivesIsOneGroup) {
  TestGraph t;
  const ValueId x = t.Input({1, 6, 8});
  const Attributes rows = {
      {"fn", std::string("mean")}, {"axes", Shape{-1}}, {"keepdims", int64_t{1}}};
  const ValueId y = t.Binary("add", t.Linear(x, 8), x);
  const ValueId centred = t.Binary("sub", y, t.Op("Reduce", {y}, rows));
  const ValueId variance = t.Op("Reduce", {t.Binary("pow", centred, t.Scalar(2))}, rows);
  const ValueId root = t.Unary("sqrt", t.Binary("add", variance, t.Scalar(1e-5)));
  const ValueId normal = t.Binary("div", centred, root);
  const ValueId scaled = t.Binary("mul", normal, t.Constant({8}));
  t.Output(t.Binary("add", scaled, t.Constant({8})), "y");
  ExpectGroups(t, R"(
group 0 kernel anchor MatMul: MatMul, Binary.add, Binary.add, Normalise.layer -> %0
)");
}

TEST(GroupingTest, LongChainsAreCut) {
  TestGraph t;
  ValueId x = t.Input({4});
  for (int k = 0; k < 70; ++k) x = t.Unary("sin", x);
  t.Output(x, "y");
  InterpreterEvaluator evaluator;
  ASSERT_TRUE(RunPipeline(t.graph, evaluator, testing::TestTarget()).ok());
  const auto groups = GroupNodes(t.graph, testing::TestTarget());
  ASSERT_TRUE(groups.ok());
  ASSERT_EQ(groups->size(), 3U);
  EXPECT_EQ((*groups)[0].nodes.size(), 32U);
  EXPECT_EQ((*groups)[2].nodes.size(), 6U);
}

}  // namespace
}  // namespace hone::graph
