#include "gtest/gtest.h"

#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

TEST(MergeSiblingsTest, MergesProductsOfOneValue) {
  TestGraph t;
  const ValueId x = t.Input({2, 5, 6});
  t.Output(t.Linear(x, 4), "q");
  t.Output(t.Linear(x, 4), "k");
  t.Output(t.Op("MatMul", {x, t.Constant({6, 3})}), "v");
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
output %4 q
output %8 k
output %10 v
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
output %5 q
output %6 k
output %7 v
)");
}

}  // namespace
}  // namespace hone::graph
