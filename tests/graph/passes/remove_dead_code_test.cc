#include "gtest/gtest.h"

#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

TEST(RemoveDeadCodeTest, DropsNodesNobodyReads) {
  TestGraph t;
  const ValueId x = t.Input({4});
  const ValueId dead = t.Unary("exp", x);
  t.Unary("sin", dead);
  t.Output(t.Unary("neg", x), "y");
  ExpectRewrite(t.graph, RemoveDeadCode, R"(
graph test
%0:f32[4] = input input0
%1:f32[4] = Unary(%0) {fn=exp}
%2:f32[4] = Unary(%1) {fn=sin}
%3:f32[4] = Unary(%0) {fn=neg}
output %3 y
)",
                R"(
graph test
%0:f32[4] = input input0
%1:f32[4] = Unary(%0) {fn=neg}
output %1 y
)");
}

TEST(RemoveDeadCodeTest, DropsOutputsNobodyReads) {
  TestGraph t;
  const ValueId x = t.Input({1, 2, 4, 4});
  const auto pooled = t.Ops("Pool", {x}, 2,
                            {{"kind", std::string("max")},
                             {"kernel", Shape{2, 2}},
                             {"strides", Shape{2, 2}},
                             {"dilations", Shape{1, 1}},
                             {"pads", Shape{0, 0, 0, 0}},
                             {"layout", std::string("nchw")}});
  t.Output(pooled[0], "y");
  ExpectRewrite(t.graph, RemoveDeadCode, R"(
graph test
%0:f32[1,2,4,4] = input input0
%1:f32[1,2,2,2], %2:i64[1,2,2,2] = Pool(%0) {dilations=[1,1] kernel=[2,2] kind=max layout=nchw
    pads=[0,0,0,0] strides=[2,2]}
output %1 y
)",
                R"(
graph test
%0:f32[1,2,4,4] = input input0
%1:f32[1,2,2,2] = Pool(%0) {dilations=[1,1] kernel=[2,2] kind=max layout=nchw pads=[0,0,0,0]
    strides=[2,2]}
output %1 y
)");
}

TEST(RemoveDeadCodeTest, RoutinesOfTheRuntimeMakeAllTheirOutputs) {
  TestGraph t;
  const auto top = t.Ops("TopK", {t.Input({2, 4})}, 2, {{"axis", int64_t{1}}, {"k", int64_t{2}}});
  t.Output(top[0], "values");
  const std::string before = ToText(t.graph);
  InterpreterEvaluator evaluator;
  const ir::Target target = testing::TestTarget();
  const auto changes = RemoveDeadCode(t.graph, {evaluator, target});
  ASSERT_TRUE(changes.ok());
  EXPECT_EQ(*changes, 0);
  EXPECT_EQ(ToText(t.graph), before);
}

}  // namespace
}  // namespace hone::graph
