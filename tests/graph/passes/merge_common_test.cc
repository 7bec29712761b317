#include "gtest/gtest.h"

#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

TEST(MergeCommonTest, ComputesEqualNodesOnce) {
  TestGraph t;
  const ValueId x = t.Input({4});
  const ValueId a = t.Binary("mul", t.Unary("exp", x), t.Scalar(2));
  const ValueId b = t.Binary("mul", t.Unary("exp", x), t.Scalar(2));
  t.Output(t.Binary("add", a, b), "y");
  ExpectRewrite(t.graph, MergeCommon, R"(
graph test
%0:f32[4] = input input0
%1:f32[4] = Unary(%0) {fn=exp}
%2:f32[] = constant {2}
%3:f32[4] = Binary(%1, %2) {fn=mul}
%4:f32[4] = Unary(%0) {fn=exp}
%5:f32[] = constant {2}
%6:f32[4] = Binary(%4, %5) {fn=mul}
%7:f32[4] = Binary(%3, %6) {fn=add}
output %7 y
)",
                R"(
graph test
%0:f32[4] = input input0
%1:f32[4] = Unary(%0) {fn=exp}
%2:f32[] = constant {2}
%3:f32[4] = Binary(%1, %2) {fn=mul}
%4:f32[4] = Binary(%3, %3) {fn=add}
output %4 y
)");
}

TEST(MergeCommonTest, KeepsWhatDiffersInAttributes) {
  TestGraph t;
  const ValueId x = t.Input({4, 4});
  const ValueId a = t.Binary("add", t.Transpose(x, {1, 0}), t.Reshape(x, {4, 4}));
  t.Output(t.Binary("add", a, t.Binary("mul", t.Transpose(x, {0, 1}), t.Transpose(x, {1, 0}))),
           "y");
  ExpectRewrite(t.graph, MergeCommon, R"(
graph test
%0:f32[4,4] = input input0
%1:f32[4,4] = Reshape(%0) {shape=[4,4]}
%2:f32[4,4] = Transpose(%0) {perm=[1,0]}
%3:f32[4,4] = Binary(%2, %1) {fn=add}
%4:f32[4,4] = Transpose(%0) {perm=[1,0]}
%5:f32[4,4] = Transpose(%0) {perm=[0,1]}
%6:f32[4,4] = Binary(%5, %4) {fn=mul}
%7:f32[4,4] = Binary(%3, %6) {fn=add}
output %7 y
)",
                R"(
graph test
%0:f32[4,4] = input input0
%1:f32[4,4] = Reshape(%0) {shape=[4,4]}
%2:f32[4,4] = Transpose(%0) {perm=[1,0]}
%3:f32[4,4] = Binary(%2, %1) {fn=add}
%4:f32[4,4] = Transpose(%0) {perm=[0,1]}
%5:f32[4,4] = Binary(%4, %2) {fn=mul}
%6:f32[4,4] = Binary(%3, %5) {fn=add}
output %6 y
)");
}

}  // namespace
}  // namespace hone::graph
