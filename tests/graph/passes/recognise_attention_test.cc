#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/group_workload.h"
#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "ir/text.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::ExpectSame;
using testing::RandomInputs;
using testing::RunGroups;
using testing::RunNodes;
using testing::TestGraph;
using testing::TestTarget;

ValueId SoftmaxOf(TestGraph& t, ValueId x) { return t.Op("Softmax", {x}, {{"axis", int64_t{-1}}}); }

ValueId Scores(TestGraph& t, ValueId q, ValueId k) {
  return t.Op("MatMul", {q, k}, {{"transpose_b", int64_t{1}}});
}

// softmax(q kᵀ / 2 + mask) v, where positions of `allowed` are masked too: as few rows and keys as
// are long.
TestGraph Attention(int64_t rows = 64, int64_t keys = 256) {
  TestGraph t;
  const ValueId q = t.Input({2, rows, 2});
  const ValueId k = t.Input({2, keys, 2});
  const ValueId v = t.Input({2, keys, 3});
  const ValueId scaled = t.Binary("mul", Scores(t, q, k), t.Scalar(0.5));
  const ValueId masked = t.Binary("add", scaled, t.Input({1, 1, keys}));
  const ValueId allowed = t.Binary("lt", t.Input({rows, keys}), t.Scalar(0.9));
  const ValueId kept = t.Op("Select", {allowed, masked, t.Scalar(-1e9)});
  t.Output(t.Op("MatMul", {SoftmaxOf(t, kept), v}), "y");
  return t;
}

int Marked(Graph& graph, const ir::Target& target = TestTarget()) {
  InterpreterEvaluator evaluator;
  const auto marked = RecogniseAttention(graph, {evaluator, target});
  EXPECT_TRUE(marked.ok()) << StatusMessage(marked.status());
  return marked.ok() ? *marked : -1;
}

TEST(RecogniseAttentionTest, MarksTheSecondProduct) {
  TestGraph t;
  const ValueId q = t.Input({2, 64, 4});
  const ValueId scores = Scores(t, q, t.Input({2, 256, 4}));
  t.Output(t.Op("MatMul", {SoftmaxOf(t, scores), t.Input({2, 256, 6})}), "y");
  ExpectRewrite(t.graph, RecogniseAttention, R"(
graph test
%0:f32[2,64,4] = input input0
%1:f32[2,256,4] = input input1
%2:f32[2,256,6] = input input2
%3:f32[2,64,256] = MatMul(%0, %1) {transpose_b=1}
%4:f32[2,64,256] = Softmax(%3) {axis=-1}
%5:f32[2,64,6] = MatMul(%4, %2)
output %5 y
)",
                R"(
graph test
%0:f32[2,64,4] = input input0
%1:f32[2,256,4] = input input1
%2:f32[2,256,6] = input input2
%3:f32[2,64,256] = MatMul(%0, %1) {transpose_b=1}
%4:f32[2,64,256] = Softmax(%3) {axis=-1}
%5:f32[2,64,6] = MatMul(%4, %2) {attention=1}
output %5 y
)");
}

// One vector of rows, and as many keys.
TEST(RecogniseAttentionTest, LeavesFewRowsOrKeysInTwoGroups) {
  struct Sizes {
    int64_t rows, keys;
    int marked;
  };
  for (const Sizes& n :
       {Sizes{64, 15, 0}, {7, 256, 0}, {1, 4096, 0}, {16, 16, 1}, {197, 197, 1}, {64, 256, 1}}) {
    TestGraph t = Attention(n.rows, n.keys);
    EXPECT_EQ(Marked(t.graph), n.marked) << n.rows << " rows, " << n.keys << " keys";
    const auto groups = GroupNodes(t.graph, TestTarget());
    ASSERT_TRUE(groups.ok());
    EXPECT_EQ(groups->size(), n.marked == 1 ? 1U : 2U) << n.rows << " rows, " << n.keys << " keys";
  }
}

TEST(RecogniseAttentionTest, IsForDevicesThatHaveSuchAKernel) {
  TestGraph t = Attention();
  ir::Target gpu;
  std::string error;
  ASSERT_TRUE(ir::ParseTarget("cuda:sm_90a", &gpu, &error)) << error;
  EXPECT_EQ(Marked(t.graph, gpu), 0);
}

TEST(RecogniseAttentionTest, LeavesOtherProductsAlone) {
  enum Kind {
    kOtherAxis,
    kScoresRead,
    kProbabilitiesAreOutput,
    kNoProduct,
    kOtherOperand,
    kWeighted,
    kRounded,
  };
  for (int k = kOtherAxis; k <= kRounded; ++k) {
    const auto kind = static_cast<Kind>(k);
    TestGraph t;
    const ValueId q = t.Input({2, 256, 256});
    ValueId scores = kind == kNoProduct ? t.Unary("abs", q) : Scores(t, q, t.Input({2, 256, 256}));
    if (kind == kScoresRead) t.Output(t.Unary("abs", scores), "scores");
    if (kind == kRounded)
      scores = t.Op("Cast", {t.Op("Cast", {scores}, {{"to", std::string("f16")}})},
                    {{"to", std::string("f32")}});
    ValueId p = t.Op("Softmax", {scores}, {{"axis", kind == kOtherAxis ? int64_t{1} : int64_t{2}}});
    if (kind == kProbabilitiesAreOutput) t.Output(p, "p");
    if (kind == kWeighted) p = t.Binary("mul", p, t.Scalar(0.5));
    const ValueId v = t.Input({2, 256, 256});
    t.Output(kind == kOtherOperand ? t.Op("MatMul", {v, p}) : t.Op("MatMul", {p, v}), "y");
    EXPECT_EQ(Marked(t.graph), 0) << "kind " << kind;
  }
}

TEST(RecogniseAttentionTest, IsOneGroupOfBothProducts) {
  TestGraph t = Attention();
  const Graph before = t.graph;
  ASSERT_EQ(Marked(t.graph), 1);
  const auto groups = GroupNodes(t.graph, TestTarget());
  ASSERT_TRUE(groups.ok()) << StatusMessage(groups.status());
  EXPECT_EQ(testing::Renumbered(ToText(t.graph, *groups)),
            "group 0 kernel anchor MatMul: MatMul, Binary.mul, Binary.add, Binary.lt, Select, "
            "Softmax, MatMul -> %0\n");
  const auto group = BuildWorkload(t.graph, (*groups)[0]);
  ASSERT_TRUE(group.ok()) << StatusMessage(group.status());
  EXPECT_EQ("\n" + testing::Wrapped(ir::ToText(group->workload)), R"(
workload 1
x0: f32[64,256] input range(-1,1)
x1: f32[2,64,2] input range(-1,1)
x2: f32[2,256,2] input range(-1,1)
x3: f32[1,1,256] input range(-1,1)
x4: f32[2,256,3] input range(-1,1)
s0: bool[64,256] = x0[i0, i1] < 0.9
s1: f32[2,64,256] = sum[r0:2] (x1[i0, i1, r0] * x2[i0, i2, r0])
s2: f32[2,64,256] = s1[i0, i1, i2] * 0.5
s3: f32[2,64,256] = s2[i0, i1, i2] + x3[0, 0, i2]
s4: f32[2,64,256] = select(s0[i1, i2], s3[i0, i1, i2], -1000000000.0)
s5: f32[2,64] = max[r0:256] (s4[i0, i1, r0])
s6: f32[2,64,256] = exp(s4[i0, i1, i2] - s5[i0, i1])
s7: f32[2,64] = sum[r0:256] (s6[i0, i1, r0])
s8: f32[2,64,256] = s6[i0, i1, i2] * (1.0 / s7[i0, i1])
s9: f32[2,64,3] output = sum[r0:256] (s8[i0, i1, r0] * x4[i0, r0, i2])
)");
  const auto inputs = RandomInputs(before, 7);
  ExpectSame(RunNodes(before, inputs), RunGroups(t.graph, *groups, inputs));
}

TEST(RecogniseAttentionTest, WithoutTheMarkBothProductsStayApart) {
  TestGraph t = Attention();
  const auto groups = GroupNodes(t.graph, TestTarget());
  ASSERT_TRUE(groups.ok());
  EXPECT_EQ(groups->size(), 2U);
}

TEST(RecogniseAttentionTest, WhatFollowsJoinsTheGroup) {
  // Heads are put side by side by the store, and a residual is added.
  TestGraph t;
  const ValueId q = t.Input({2, 64, 4});
  const ValueId scores = Scores(t, q, t.Input({2, 256, 4}));
  const ValueId y = t.Op("MatMul", {SoftmaxOf(t, scores), t.Input({2, 256, 4})});
  t.Output(t.Transpose(t.Binary("add", y, q), {1, 0, 2}), "y");
  const Graph before = t.graph;
  ASSERT_EQ(Marked(t.graph), 1);
  const auto groups = GroupNodes(t.graph, TestTarget());
  ASSERT_TRUE(groups.ok()) << StatusMessage(groups.status());
  EXPECT_EQ(groups->size(), 1U) << ToText(t.graph, *groups);
  const auto inputs = RandomInputs(before, 8);
  ExpectSame(RunNodes(before, inputs), RunGroups(t.graph, *groups, inputs));
}

}  // namespace
}  // namespace hone::graph
