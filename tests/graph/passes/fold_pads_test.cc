#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "base/status.h"
#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::ExpectSame;
using testing::RandomInputs;
using testing::RunNodes;
using testing::TestGraph;
using testing::TestTarget;
using Shape = std::vector<int64_t>;

ValueId Padded(TestGraph& t, ValueId x, Shape begin, Shape end,
               const std::string& mode = "constant", double value = 0) {
  std::vector<ValueId> inputs = {x};
  if (value != 0) inputs.push_back(t.Scalar(value));
  return t.Op("Pad", inputs, {{"begin", begin}, {"end", end}, {"mode", mode}});
}

TEST(FoldPadsTest, AConvolutionPadsItself) {
  TestGraph t;
  const ValueId x = Padded(t, t.Input({1, 1, 4, 4}), {0, 0, 0, 1}, {0, 0, 2, 1});
  t.Output(t.Conv(x, 1, 2, 1, 1), "y");
  ExpectRewrite(t.graph, FoldPads, R"(
graph test
%0:f32[1,1,4,4] = input input0
%1:f32[1,1,6,6] = Pad(%0) {begin=[0,0,0,1] end=[0,0,2,1] mode=constant}
%2:f32[1,1,2,2] = constant {0.40584368,0.04087324,0.1482114,-0.2173428}
%3:f32[1] = constant {0.39435685}
%4:f32[1,1,7,7] = Conv(%1, %2, %3) {dilations=[1,1] group=1 layout=nchw pads=[1,1,1,1]
    strides=[1,1]}
output %4 y
)",
                R"(
graph test
%0:f32[1,1,4,4] = input input0
%1:f32[1,1,6,6] = Pad(%0) {begin=[0,0,0,1] end=[0,0,2,1] mode=constant}
%2:f32[1,1,2,2] = constant {0.40584368,0.04087324,0.1482114,-0.2173428}
%3:f32[1] = constant {0.39435685}
%4:f32[1,1,7,7] = Conv(%0, %2, %3) {dilations=[1,1] group=1 layout=nchw pads=[1,2,3,2]
    strides=[1,1]}
output %4 y
)");
}

TEST(FoldPadsTest, OtherPadsStay) {
  struct Case {
    const char* what;
    Shape begin;
    Shape end;
    std::string mode = "constant";
    double value = 0;
  };
  const Case cases[] = {{"another value", {0, 0, 1, 1}, {0, 0, 1, 1}, "constant", 1.5},
                        {"a mirrored border", {0, 0, 1, 1}, {0, 0, 1, 1}, "reflect"},
                        {"further channels", {0, 1, 1, 1}, {0, 0, 1, 1}},
                        {"a cut border", {0, 0, -1, 1}, {0, 0, 1, 1}}};
  InterpreterEvaluator evaluator;
  const ir::Target target = TestTarget();
  for (const Case& each : cases) {
    TestGraph t;
    const ValueId x = Padded(t, t.Input({1, 2, 4, 4}), each.begin, each.end, each.mode, each.value);
    t.Output(t.Conv(x, 2, 3), "y");
    const auto changes = FoldPads(t.graph, {evaluator, target});
    ASSERT_TRUE(changes.ok()) << StatusMessage(changes.status());
    EXPECT_EQ(*changes, 0) << each.what;
  }
}

TEST(FoldPadsTest, OtherReadersKeepThePaddedValue) {
  TestGraph t;
  const ValueId x = Padded(t, t.Input({1, 2, 4, 4}), {0, 0, 1, 1}, {0, 0, 1, 1});
  t.Output(t.Conv(x, 2, 3), "y");
  t.Output(t.Unary("abs", x), "padded");
  Graph after = t.graph;
  InterpreterEvaluator evaluator;
  const ir::Target target = TestTarget();
  const auto changes = FoldPads(after, {evaluator, target});
  ASSERT_TRUE(changes.ok()) << StatusMessage(changes.status());
  EXPECT_EQ(*changes, 1);
  const auto inputs = RandomInputs(t.graph, 4);
  ExpectSame(RunNodes(t.graph, inputs), RunNodes(after, inputs));
}

}  // namespace
}  // namespace hone::graph
