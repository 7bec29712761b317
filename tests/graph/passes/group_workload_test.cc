#include "graph/group_workload.h"

#include "gtest/gtest.h"

#include "base/status.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::TestGraph;
using testing::Wrapped;

// All nodes of the graph as one group.
GroupWorkload Whole(const TestGraph& test) {
  Group group;
  for (size_t n = 0; n < test.graph.nodes.size(); ++n)
    group.nodes.push_back(static_cast<NodeId>(n));
  auto workload = BuildWorkload(test.graph, group);
  HONE_CHECK(workload.ok()) << StatusMessage(workload.status());
  return *workload;
}

void ExpectWhole(const TestGraph& test, std::string_view after) {
  EXPECT_EQ("\n" + Wrapped(ir::ToText(Whole(test).workload)), after);
}

TEST(GroupWorkloadTest, NamesTheValuesOfItsTensorsInWorkloadOrder) {
  TestGraph t;
  const ValueId a = t.Input({2, 3});
  const ValueId weights = t.Constant({3, 4});
  const ValueId product = t.Op("MatMul", {a, weights});
  const ValueId b = t.Input({2, 4});
  const ValueId sum = t.Binary("add", product, b);
  t.Output(sum, "sum");
  t.Output(t.Unary("tanh", sum), "tanh");
  const GroupWorkload group = Whole(t);
  EXPECT_EQ(group.inputs, (std::vector<ValueId>{a, b}));
  EXPECT_EQ(group.constants, std::vector<ValueId>{weights});
  EXPECT_EQ(group.outputs, t.graph.outputs);
}

TEST(GroupWorkloadTest, ConstantsOfOneElementStandInTheText) {
  TestGraph t;
  t.Output(t.Binary("mul", t.Input({4}), t.Scalar(3)), "y");
  ExpectWhole(t, R"(
workload 1
x0: f32[4] input range(-1,1)
s0: f32[4] output = x0[i0] * 3.0
)");
}

TEST(GroupWorkloadTest, RelabellingsBetweenStagesDisappear) {
  TestGraph t;
  const ValueId x = t.Transpose(t.Reshape(t.Input({4, 6}), {2, 2, 6}), {1, 0, 2});
  t.Output(t.Unary("exp", t.Reshape(x, {4, 6})), "y");
  ExpectWhole(t, R"(
workload 1
x0: f32[4,6] input range(-1,1)
s0: f32[4,6] output = exp(x0[i0 % 2 * 2 + i0 // 2, i1])
)");
}

// Weights of a batch of styles: what packs an operand asks for one axis of it for each of the
// reader's.
TEST(GroupWorkloadTest, AMapThatAReshapeReadsIsComputedOnItsAxes) {
  TestGraph t;
  const ValueId scaled = t.Binary("mul", t.Input({2, 1, 3}), t.Constant({1, 4, 3}));
  const ValueId weights = t.Reshape(t.Unary("tanh", scaled), {8, 3});
  t.Output(t.Op("MatMul", {weights, t.Input({3, 5})}), "y");
  ExpectWhole(t, R"(
workload 1
x0: f32[2,1,3] input range(-1,1)
x1: f32[1,4,3] constant
x2: f32[3,5] input range(-1,1)
s0: f32[2,4,3] = x0[i0, 0, i2] * x1[0, i1, i2]
s1: f32[8,3] = tanh(s0[i0 // 4, i0 % 4, i1])
s2: f32[8,5] output = sum[r0:3] (s1[i0, r0] * x2[r0, i1])
)");
}

TEST(GroupWorkloadTest, AMapThatOthersReadTooStaysOnItsAxes) {
  TestGraph t;
  const ValueId map = t.Unary("tanh", t.Input({2, 4, 3}));
  t.Output(t.Op("MatMul", {t.Reshape(map, {8, 3}), t.Input({3, 5})}), "y");
  t.Output(t.Unary("exp", map), "z");
  ExpectWhole(t, R"(
workload 1
x0: f32[2,4,3] input range(-1,1)
x1: f32[3,5] input range(-1,1)
s0: f32[2,4,3] = tanh(x0[i0, i1, i2])
s1: f32[8,5] output = sum[r0:3] (s0[i0 // 4, i0 % 4, r0] * x1[r0, i1])
s2: f32[2,4,3] output = exp(s0[i0, i1, i2])
)");
}

TEST(GroupWorkloadTest, WhatFollowsAnAnchorIsStoredFromItsAxes) {
  TestGraph t;
  const ValueId product = t.Op("MatMul", {t.Input({3, 8}), t.Constant({8, 4})});
  const ValueId heads = t.Transpose(t.Reshape(product, {3, 2, 2}), {1, 0, 2});
  t.Output(t.Binary("add", t.Unary("tanh", heads), t.Constant({2, 1, 2})), "y");
  ExpectWhole(t, R"(
workload 1
x0: f32[3,8] input range(-1,1)
x1: f32[8,4] constant
x2: f32[2,1,2] constant
s0: f32[3,4] = sum[r0:8] (x0[i0, r0] * x1[r0, i1])
s1: f32[3,4] = tanh(s0[i0, i1])
s2: f32[2,3,2] output over [i0:3,i1:4] at [i1 // 2, i0, i1 % 2] = s1[i0, i1] + x2[i1 // 2, 0, i1
    % 2]
)");
}

// Where in a scalar another axis' point would be stored no index says.
TEST(GroupWorkloadTest, WhatFollowsAnAnchorAsAScalarKeepsItsLackOfAxes) {
  TestGraph t;
  const ValueId product = t.Op("MatMul", {t.Input({1, 8}), t.Constant({8, 1})});
  const ValueId scalar = t.Unary("tanh", t.Reshape(product, {}));
  t.Output(scalar, "scalar");
  t.Output(t.Unary("exp", scalar), "y");
  ExpectWhole(t, R"(
workload 1
x0: f32[1,8] input range(-1,1)
x1: f32[8,1] constant
s0: f32[1,1] = sum[r0:8] (x0[0, r0] * x1[r0, 0])
s1: f32[] output = tanh(s0[0, 0])
s2: f32[] output = exp(s1[])
)");
  EXPECT_TRUE(ir::Verify(Whole(t).workload).ok());
}

TEST(GroupWorkloadTest, AnOutputThatIsReadAndRelabelledIsCopiedOut) {
  TestGraph t;
  const ValueId product = t.Op("MatMul", {t.Input({3, 8}), t.Constant({8, 4})});
  const ValueId turned = t.Unary("tanh", t.Transpose(product, {1, 0}));
  t.Output(turned, "turned");
  t.Output(t.Unary("exp", turned), "y");
  ExpectWhole(t, R"(
workload 1
x0: f32[3,8] input range(-1,1)
x1: f32[8,4] constant
s0: f32[3,4] = sum[r0:8] (x0[i0, r0] * x1[r0, i1])
s1: f32[3,4] = tanh(s0[i0, i1])
s2: f32[4,3] output over [i0:3,i1:4] at [i1, i0] = s1[i0, i1]
s3: f32[4,3] output over [i0:3,i1:4] at [i1, i0] = exp(s1[i0, i1])
)");
}

TEST(GroupWorkloadTest, KeepsTheSignOfFloatsAndTheRangeOfIndices) {
  TestGraph t;
  const ValueId x = t.Input({4});
  const ValueId variance = t.Input({4});
  const ValueId index = t.Input({4}, ir::DType::kI64);
  t.graph.values[x].range = {-7.25, 3};
  t.graph.values[variance].range = {0.001, 90};
  t.graph.values[index].range = {0, 5};
  const ValueId scaled = t.Binary("mul", x, t.Unary("rsqrt", variance));
  const ValueId rows = t.Op("Gather", {t.Constant({5}), index}, {{"axis", int64_t{0}}});
  t.Output(t.Binary("add", scaled, rows), "y");
  const GroupWorkload group = Whole(t);
  const std::vector<int> inputs = group.workload.Inputs();
  // The Stage of rsqrt comes first, so its operand does.
  ASSERT_EQ(group.inputs, (std::vector<ValueId>{variance, x, index}));
  EXPECT_EQ(group.workload.tensors[inputs[0]].range, (ir::ValueRange{0.5, 1.5}));
  EXPECT_EQ(group.workload.tensors[inputs[1]].range, (ir::ValueRange{-1, 1}));
  EXPECT_EQ(group.workload.tensors[inputs[2]].range, (ir::ValueRange{0, 5}));
}

TEST(GroupWorkloadTest, PointwiseConvolutionsHaveOneReduceAxis) {
  TestGraph t;
  t.Output(t.Conv(t.Input({1, 3, 4, 4}), 2, 1), "y");
  ExpectWhole(t, R"(
workload 1
x0: f32[1,3,4,4] input range(-1,1)
x1: f32[2,3,1,1] constant
x2: f32[2] constant
s0: f32[1,2,4,4] = sum[r0:3] (x0[0, r0, i2, i3] * x1[i1, r0, 0, 0])
s1: f32[1,2,4,4] output = s0[i0, i1, i2, i3] + x2[i1]
)");
}

TEST(GroupWorkloadTest, EqualGroupsAreEqualWorkloads) {
  // The order in which values were made does not show.
  TestGraph a;
  const ValueId x = a.Input({2, 3});
  const ValueId y = a.Input({2, 3});
  a.Output(a.Binary("sub", a.Unary("exp", x), a.Unary("tanh", y)), "z");
  TestGraph b;
  const ValueId v = b.Input({2, 3});
  const ValueId u = b.Input({2, 3});
  const ValueId tanh = b.Unary("tanh", v);
  b.Output(b.Binary("sub", b.Unary("exp", u), tanh), "z");
  EXPECT_EQ(ir::ToText(Whole(a).workload), ir::ToText(Whole(b).workload));
}

}  // namespace
}  // namespace hone::graph
