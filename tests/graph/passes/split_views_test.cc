#include "gtest/gtest.h"

#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

TEST(SplitViewsTest, GivesEveryReaderItsReshape) {
  TestGraph t;
  const ValueId view = t.Reshape(t.Unary("exp", t.Input({2, 6})), {3, 4});
  t.Output(t.Binary("add", t.Unary("neg", view), t.Binary("mul", view, view)), "y");
  ExpectRewrite(t.graph, SplitViews, R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,6] = Unary(%0) {fn=exp}
%2:f32[3,4] = Reshape(%1) {shape=[3,4]}
%3:f32[3,4] = Binary(%2, %2) {fn=mul}
%4:f32[3,4] = Unary(%2) {fn=neg}
%5:f32[3,4] = Binary(%4, %3) {fn=add}
output %5 y
)",
                R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,6] = Unary(%0) {fn=exp}
%2:f32[3,4] = Reshape(%1) {shape=[3,4]}
%3:f32[3,4] = Binary(%2, %2) {fn=mul}
%4:f32[3,4] = Reshape(%1) {shape=[3,4]}
%5:f32[3,4] = Unary(%4) {fn=neg}
%6:f32[3,4] = Binary(%5, %3) {fn=add}
output %6 y
)");
}

}  // namespace
}  // namespace hone::graph
