#include "gtest/gtest.h"

#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

TEST(CanonicaliseTest, JoinsReshapesAndTransposes) {
  TestGraph t;
  const ValueId x = t.Input({2, 3, 4});
  const ValueId y =
      t.Transpose(t.Transpose(t.Reshape(t.Reshape(x, {6, 4}), {3, 2, 4}), {1, 0, 2}), {1, 2, 0});
  t.Output(t.Unary("neg", y), "y");
  ExpectRewrite(t.graph, Canonicalise, R"(
graph test
%0:f32[2,3,4] = input input0
%1:f32[6,4] = Reshape(%0) {shape=[6,4]}
%2:f32[3,2,4] = Reshape(%1) {shape=[3,2,4]}
%3:f32[2,3,4] = Transpose(%2) {perm=[1,0,2]}
%4:f32[3,4,2] = Transpose(%3) {perm=[1,2,0]}
%5:f32[3,4,2] = Unary(%4) {fn=neg}
output %5 y
)",
                R"(
graph test
%0:f32[2,3,4] = input input0
%1:f32[6,4] = Reshape(%0) {shape=[6,4]}
%2:f32[3,2,4] = Reshape(%0) {shape=[3,2,4]}
%3:f32[2,3,4] = Transpose(%2) {perm=[1,0,2]}
%4:f32[3,4,2] = Transpose(%2) {perm=[0,2,1]}
%5:f32[3,4,2] = Unary(%4) {fn=neg}
output %5 y
)");
}

TEST(CanonicaliseTest, MakesTransposesOfOnesReshapes) {
  TestGraph t;
  t.Output(t.Unary("neg", t.Transpose(t.Input({1, 5, 1, 1}), {0, 2, 3, 1})), "y");
  ExpectRewrite(t.graph, Canonicalise, R"(
graph test
%0:f32[1,5,1,1] = input input0
%1:f32[1,1,1,5] = Transpose(%0) {perm=[0,2,3,1]}
%2:f32[1,1,1,5] = Unary(%1) {fn=neg}
output %2 y
)",
                R"(
graph test
%0:f32[1,5,1,1] = input input0
%1:f32[1,1,1,5] = Reshape(%0) {shape=[1,1,1,5]}
%2:f32[1,1,1,5] = Unary(%1) {fn=neg}
output %2 y
)");
}

TEST(CanonicaliseTest, PutsTransposesIntoMatrixProducts) {
  TestGraph t;
  const ValueId q = t.Input({2, 4, 8});
  const ValueId k = t.Transpose(t.Input({2, 3, 8}), {0, 2, 1});
  t.Output(t.Op("MatMul", {q, k}), "scores");
  ExpectRewrite(t.graph, Canonicalise, R"(
graph test
%0:f32[2,4,8] = input input0
%1:f32[2,3,8] = input input1
%2:f32[2,8,3] = Transpose(%1) {perm=[0,2,1]}
%3:f32[2,4,3] = MatMul(%0, %2)
output %3 scores
)",
                R"(
graph test
%0:f32[2,4,8] = input input0
%1:f32[2,3,8] = input input1
%2:f32[2,8,3] = Transpose(%1) {perm=[0,2,1]}
%3:f32[2,4,3] = MatMul(%0, %1) {transpose_b=1}
output %3 scores
)");
}

// As in rotary embeddings: frequencies times positions.
TEST(CanonicaliseTest, MultipliesAColumnByARowElementWise) {
  TestGraph t;
  const ValueId column = t.Input({2, 1, 4});
  const ValueId row = t.Input({1, 5});
  t.Output(t.Op("MatMul", {column, row}, {{"transpose_a", int64_t{1}}}), "angles");
  ExpectRewrite(t.graph, Canonicalise, R"(
graph test
%0:f32[2,1,4] = input input0
%1:f32[1,5] = input input1
%2:f32[2,4,5] = MatMul(%0, %1) {transpose_a=1}
output %2 angles
)",
                R"(
graph test
%0:f32[2,1,4] = input input0
%1:f32[1,5] = input input1
%2:f32[2,4,1] = Reshape(%0) {shape=[2,4,1]}
%3:f32[2,4,5] = Binary(%2, %1) {fn=mul}
output %3 angles
)");
}

TEST(CanonicaliseTest, LeavesTheInnermostAxisOfHeadsInPlace) {
  TestGraph t;
  const ValueId q = t.Input({1, 2, 4, 8});
  const ValueId k = t.Transpose(t.Input({1, 4, 2, 8}), {0, 2, 3, 1});
  t.Output(t.Op("MatMul", {q, k}), "scores");
  ExpectRewrite(t.graph, Canonicalise, R"(
graph test
%0:f32[1,2,4,8] = input input0
%1:f32[1,4,2,8] = input input1
%2:f32[1,2,8,4] = Transpose(%1) {perm=[0,2,3,1]}
%3:f32[1,2,4,4] = MatMul(%0, %2)
output %3 scores
)",
                R"(
graph test
%0:f32[1,2,4,8] = input input0
%1:f32[1,4,2,8] = input input1
%2:f32[1,2,8,4] = Transpose(%1) {perm=[0,2,3,1]}
%3:f32[1,2,4,8] = Transpose(%1) {perm=[0,2,1,3]}
%4:f32[1,2,4,4] = MatMul(%0, %3) {transpose_b=1}
output %4 scores
)");
}

TEST(CanonicaliseTest, DropsWhatChangesNothing) {
  TestGraph t;
  const ValueId x = t.Input({2, 3});
  const ValueId expanded = t.Op("Expand", {t.Input({1, 3})}, {{"shape", Shape{2, 3}}});
  const ValueId y = t.Op("Slice", {t.Binary("add", x, expanded)},
                         {{"starts", Shape{0, 0}}, {"steps", Shape{1, 1}}, {"sizes", Shape{2, 3}}});
  const ValueId z =
      t.Op("Cast", {t.Op("Cast", {y}, {{"to", std::string("f64")}})}, {{"to", std::string("f32")}});
  t.Output(t.Op("Concat", {z}, {{"axis", int64_t{0}}}), "y");
  ExpectRewrite(t.graph, Canonicalise, R"(
graph test
%0:f32[2,3] = input input0
%1:f32[1,3] = input input1
%2:f32[2,3] = Expand(%1) {shape=[2,3]}
%3:f32[2,3] = Binary(%0, %2) {fn=add}
%4:f32[2,3] = Slice(%3) {sizes=[2,3] starts=[0,0] steps=[1,1]}
%5:f64[2,3] = Cast(%4) {to=f64}
%6:f32[2,3] = Cast(%5) {to=f32}
%7:f32[2,3] = Concat(%6) {axis=0}
output %7 y
)",
                R"(
graph test
%0:f32[2,3] = input input0
%1:f32[1,3] = input input1
%2:f32[2,3] = Expand(%1) {shape=[2,3]}
%3:f32[2,3] = Binary(%0, %1) {fn=add}
%4:f64[2,3] = Cast(%3) {to=f64}
output %3 y
)");
}

TEST(CanonicaliseTest, KeepsTheNameOfAnOutputThatIsAnInput) {
  TestGraph t;
  t.Output(t.Reshape(t.Reshape(t.Input({4}), {2, 2}), {4}), "y");
  t.Output(t.Unary("neg", t.Reshape(t.graph.inputs[0], {4})), "z");
  ExpectRewrite(t.graph, Canonicalise, R"(
graph test
%0:f32[4] = input input0
%1:f32[2,2] = Reshape(%0) {shape=[2,2]}
%2:f32[4] = Reshape(%1) {shape=[4]}
%3:f32[4] = Reshape(%0) {shape=[4]}
%4:f32[4] = Unary(%3) {fn=neg}
output %2 y
output %4 z
)",
                R"(
graph test
%0:f32[4] = input input0
%1:f32[2,2] = Reshape(%0) {shape=[2,2]}
%2:f32[4] = Reshape(%1) {shape=[4]}
%3:f32[4] = Unary(%0) {fn=neg}
output %2 y
output %3 z
)");
}

}  // namespace
}  // namespace hone::graph
