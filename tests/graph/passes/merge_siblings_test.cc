#include "gtest/gtest.h"

#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using testing::TestTarget;

TEST(MergeSiblingsTest, MergesProductsOfOneValue) {
  TestGraph t;
  const ValueId x = t.Input({2, 5, 6});
  const ValueId q = t.Linear(x, 4);
  const ValueId k = t.Linear(x, 4);
  const ValueId v = t.Op("MatMul", {x, t.Constant({6, 3})});
  const ValueId scores = t.Op("MatMul", {q, k}, {{"transpose_b", int64_t{1}}});
  t.Output(t.Op("MatMul", {scores, v}), "y");
  ExpectRewrite(t.graph, MergeSiblings, R"(
graph test
%0:f32[2,5,6] = input input0
%1:f32[6,4] = constant
%2:f32[2,5,4] = MatMul(%0, %1)
%3:f32[4] = constant {-0.1911182,-0.57611865,-0.2250102,0.70886254}
%4:f32[2,5,4] = Binary(%2, %3) {fn=add}
%5:f32[6,4] = constant
%6:f32[2,5,4] = MatMul(%0, %5)
%7:f32[4] = constant {0.798257,0.9137367,0.7969756,-0.51133645}
%8:f32[2,5,4] = Binary(%6, %7) {fn=add}
%9:f32[6,3] = constant
%10:f32[2,5,3] = MatMul(%0, %9)
%11:f32[2,5,5] = MatMul(%4, %8) {transpose_b=1}
%12:f32[2,5,3] = MatMul(%11, %10)
output %12 y
)",
                R"(
graph test
%0:f32[2,5,6] = input input0
%1:f32[6,11] = constant
%2:f32[2,5,11] = MatMul(%0, %1)
%3:f32[11] = constant
%4:f32[2,5,11] = Binary(%2, %3) {fn=add}
%5:f32[2,5,4] = Slice(%4) {sizes=[2,5,4] starts=[0,0,0] steps=[1,1,1]}
%6:f32[2,5,4] = Slice(%4) {sizes=[2,5,4] starts=[0,0,4] steps=[1,1,1]}
%7:f32[2,5,3] = Slice(%4) {sizes=[2,5,3] starts=[0,0,8] steps=[1,1,1]}
%8:f32[2,5,5] = MatMul(%5, %6) {transpose_b=1}
%9:f32[2,5,3] = MatMul(%8, %7)
output %9 y
)");
}

TEST(MergeSiblingsTest, LeavesProductsWithEpilogues) {
  // silu(gate) · up: both products have one.
  TestGraph t;
  const ValueId x = t.Input({2, 6});
  const ValueId gate = t.Linear(x, 4);
  const ValueId up = t.Linear(x, 4);
  t.Output(t.Binary("mul", t.Binary("mul", gate, t.Unary("sigmoid", gate)), up), "y");
  Graph graph = t.graph;
  InterpreterEvaluator evaluator;
  const ir::Target target = TestTarget();
  EXPECT_EQ(*MergeSiblings(graph, {evaluator, target}), 0);
}

}  // namespace
}  // namespace hone::graph
