#include <string>

#include "gtest/gtest.h"

#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

TEST(HoistSlicesTest, PutsHeadsSideBySide) {
  TestGraph t;
  const ValueId whole = t.Unary("tanh", t.Input({1, 5, 12}));
  ValueId parts[2];
  for (int64_t k = 0; k < 2; ++k) {
    const ValueId slice = t.Op(
        "Slice", {whole},
        {{"starts", Shape{0, 0, 6 * k}}, {"steps", Shape{1, 1, 1}}, {"sizes", Shape{1, 5, 6}}});
    parts[k] = t.Transpose(t.Reshape(slice, {1, 5, 2, 3}), {0, 2, 1, 3});
  }
  t.Output(t.Op("MatMul", {parts[0], parts[1]}, {{"transpose_b", int64_t{1}}}), "scores");
  ExpectRewrite(t.graph, HoistSlices, R"(
graph test
%0:f32[1,5,12] = input input0
%1:f32[1,5,12] = Unary(%0) {fn=tanh}
%2:f32[1,5,6] = Slice(%1) {sizes=[1,5,6] starts=[0,0,0] steps=[1,1,1]}
%3:f32[1,5,2,3] = Reshape(%2) {shape=[1,5,2,3]}
%4:f32[1,2,5,3] = Transpose(%3) {perm=[0,2,1,3]}
%5:f32[1,5,6] = Slice(%1) {sizes=[1,5,6] starts=[0,0,6] steps=[1,1,1]}
%6:f32[1,5,2,3] = Reshape(%5) {shape=[1,5,2,3]}
%7:f32[1,2,5,3] = Transpose(%6) {perm=[0,2,1,3]}
%8:f32[1,2,5,5] = MatMul(%4, %7) {transpose_b=1}
output %8 scores
)",
                R"(
graph test
%0:f32[1,5,12] = input input0
%1:f32[1,5,12] = Unary(%0) {fn=tanh}
%2:f32[1,5,2,6] = Reshape(%1) {shape=[1,5,2,6]}
%3:f32[2,1,5,6] = Transpose(%2) {perm=[2,0,1,3]}
%4:f32[2,1,5,2,3] = Reshape(%3) {shape=[2,1,5,2,3]}
%5:f32[2,1,2,5,3] = Transpose(%4) {perm=[0,1,3,2,4]}
%6:f32[1,1,2,5,3] = Slice(%5) {sizes=[1,1,2,5,3] starts=[0,0,0,0,0] steps=[1,1,1,1,1]}
%7:f32[1,2,5,3] = Reshape(%6) {shape=[1,2,5,3]}
%8:f32[1,1,2,5,3] = Slice(%5) {sizes=[1,1,2,5,3] starts=[1,0,0,0,0] steps=[1,1,1,1,1]}
%9:f32[1,2,5,3] = Reshape(%8) {shape=[1,2,5,3]}
%10:f32[1,2,5,5] = MatMul(%7, %9) {transpose_b=1}
output %10 scores
)");
}

// One more axis would make seven, which no tensor has.
TEST(HoistSlicesTest, LeavesAWholeOfRankSix) {
  TestGraph t;
  const ValueId whole = t.Unary("tanh", t.Input({1, 1, 2, 2, 3, 4}));
  for (int64_t k = 0; k < 2; ++k) {
    const ValueId slice = t.Op("Slice", {whole},
                               {{"starts", Shape{0, 0, 0, 0, 0, 2 * k}},
                                {"steps", Shape(6, 1)},
                                {"sizes", Shape{1, 1, 2, 2, 3, 2}}});
    t.Output(t.Transpose(t.Reshape(slice, {4, 3, 2}), {1, 0, 2}), "part" + std::to_string(k));
  }
  InterpreterEvaluator evaluator;
  const ir::Target target = testing::TestTarget();
  const std::string before = ToText(t.graph);
  const auto changes = HoistSlices(t.graph, {evaluator, target});
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_EQ(*changes, 0);
  EXPECT_EQ(ToText(t.graph), before);
}

}  // namespace
}  // namespace hone::graph
