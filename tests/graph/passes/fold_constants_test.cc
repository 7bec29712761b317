#include "gtest/gtest.h"

#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

TEST(FoldConstantsTest, ComputesWhatIsKnown) {
  TestGraph t;
  const ValueId sum = t.Binary("add", t.Scalar(2), t.Scalar(3));
  const ValueId row =
      t.Reshape(t.graph.AddConstant(MakeConstant(ir::DType::kF32, {3}, {1, 2, 3})), {1, 3});
  t.Output(t.Binary("mul", t.Input({2, 3}), t.Binary("mul", row, sum)), "y");
  ExpectRewrite(t.graph, FoldConstants, R"(
graph test
%0:f32[2,3] = input input0
%1:f32[] = constant {2}
%2:f32[] = constant {3}
%3:f32[] = Binary(%1, %2) {fn=add}
%4:f32[3] = constant {1,2,3}
%5:f32[1,3] = Reshape(%4) {shape=[1,3]}
%6:f32[1,3] = Binary(%5, %3) {fn=mul}
%7:f32[2,3] = Binary(%0, %6) {fn=mul}
output %7 y
)",
                R"(
graph test
%0:f32[2,3] = input input0
%1:f32[1,3] = constant {5,10,15}
%2:f32[2,3] = Binary(%0, %1) {fn=mul}
output %2 y
)");
}

TEST(FoldConstantsTest, ExpandsNoScalarIntoTheModel) {
  TestGraph t;
  const ValueId large = t.Op("Expand", {t.Unary("neg", t.Scalar(1))}, {{"shape", Shape{256, 256}}});
  t.Output(t.Binary("add", t.Input({256, 256}), large), "y");
  ExpectRewrite(t.graph, FoldConstants, R"(
graph test
%0:f32[256,256] = input input0
%1:f32[] = constant {1}
%2:f32[] = Unary(%1) {fn=neg}
%3:f32[256,256] = Expand(%2) {shape=[256,256]}
%4:f32[256,256] = Binary(%0, %3) {fn=add}
output %4 y
)",
                R"(
graph test
%0:f32[256,256] = input input0
%1:f32[] = constant {-1}
%2:f32[256,256] = Expand(%1) {shape=[256,256]}
%3:f32[256,256] = Binary(%0, %2) {fn=add}
output %3 y
)");
}

}  // namespace
}  // namespace hone::graph
