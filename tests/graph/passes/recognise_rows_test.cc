#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

TEST(RecogniseRowsTest, FindsLayerNorm) {
  TestGraph t;
  const ValueId x = t.Input({2, 6});
  const Attributes mean = {
      {"fn", std::string("mean")}, {"axes", Shape{-1}}, {"keepdims", int64_t{1}}};
  const ValueId centred = t.Binary("sub", x, t.Op("Reduce", {x}, mean));
  const ValueId variance = t.Op("Reduce", {t.Binary("pow", centred, t.Scalar(2))}, mean);
  const ValueId root = t.Unary("sqrt", t.Binary("add", variance, t.Scalar(1e-5)));
  const ValueId normal = t.Binary("div", centred, root);
  t.Output(t.Binary("add", t.Binary("mul", normal, t.Constant({6})), t.Constant({6})), "y");
  ExpectRewrite(t.graph, RecogniseRows, R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,1] = Reduce(%0) {axes=[-1] fn=mean keepdims=1}
%2:f32[2,6] = Binary(%0, %1) {fn=sub}
%3:f32[] = constant {2}
%4:f32[2,6] = Binary(%2, %3) {fn=pow}
%5:f32[2,1] = Reduce(%4) {axes=[-1] fn=mean keepdims=1}
%6:f32[] = constant {1e-05}
%7:f32[2,1] = Binary(%5, %6) {fn=add}
%8:f32[2,1] = Unary(%7) {fn=sqrt}
%9:f32[2,6] = Binary(%2, %8) {fn=div}
%10:f32[6] = constant {-0.85790956,-0.23763111,0.73430496,0.10341973,0.8651449,0.91443634}
%11:f32[2,6] = Binary(%9, %10) {fn=mul}
%12:f32[6] = constant {0.40584368,0.04087324,0.1482114,-0.2173428,0.39435685,-0.71285594}
%13:f32[2,6] = Binary(%11, %12) {fn=add}
output %13 y
)",
                R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,1] = Reduce(%0) {axes=[-1] fn=mean keepdims=1}
%2:f32[2,6] = Binary(%0, %1) {fn=sub}
%3:f32[] = constant {2}
%4:f32[2,6] = Binary(%2, %3) {fn=pow}
%5:f32[2,1] = Reduce(%4) {axes=[-1] fn=mean keepdims=1}
%6:f32[] = constant {1e-05}
%7:f32[2,1] = Binary(%5, %6) {fn=add}
%8:f32[2,1] = Unary(%7) {fn=sqrt}
%9:f32[2,6] = Normalise(%0) {axes=[1] epsilon=9.999999747378752e-06 kind=layer}
%10:f32[6] = constant {-0.85790956,-0.23763111,0.73430496,0.10341973,0.8651449,0.91443634}
%11:f32[2,6] = Normalise(%0, %10) {axes=[1] epsilon=9.999999747378752e-06 kind=layer}
%12:f32[6] = constant {0.40584368,0.04087324,0.1482114,-0.2173428,0.39435685,-0.71285594}
%13:f32[2,6] = Normalise(%0, %10, %12) {axes=[1] epsilon=9.999999747378752e-06 kind=layer}
output %13 y
)");
}

// As PyTorch's exporter writes attention with a mask.
TEST(RecogniseRowsTest, FindsSoftmaxWithZerosForNan) {
  TestGraph t;
  const ValueId p = t.Op("Softmax", {t.Input({2, 6})}, {{"axis", int64_t{-1}}});
  t.Output(t.Op("Select", {t.Unary("isnan", p), t.Scalar(0), p}), "y");
  ExpectRewrite(t.graph, RecogniseRows, R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,6] = Softmax(%0) {axis=-1}
%2:bool[2,6] = Unary(%1) {fn=isnan}
%3:f32[] = constant {0}
%4:f32[2,6] = Select(%2, %3, %1)
output %4 y
)",
                R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,6] = Softmax(%0) {axis=-1}
%2:bool[2,6] = Unary(%1) {fn=isnan}
%3:f32[2,6] = Softmax(%0) {axis=-1 zero_nan=1}
output %3 y
)");
  // A row that is hidden whole, one with NaN, one with +inf, and a plain one.
  const double inf = INFINITY;
  const ConstantPtr x = MakeConstant(ir::DType::kF32, {4, 2}, {-inf, -inf, NAN, 1, inf, 1, 0, 0});
  TestGraph rows;
  const ValueId soft = rows.Op("Softmax", {rows.Input({4, 2})}, {{"axis", int64_t{1}}});
  rows.Output(rows.Op("Select", {rows.Unary("isnan", soft), rows.Scalar(0), soft}), "y");
  InterpreterEvaluator evaluator;
  const ir::Target target = testing::TestTarget();
  Graph after = rows.graph;
  ASSERT_EQ(*RecogniseRows(after, {evaluator, target}), 1);
  const auto outputs = testing::RunNodes(after, {{"input0", x}});
  testing::ExpectSame({MakeConstant(ir::DType::kF32, {4, 2}, {0, 0, 0, 0, 0, 0, 0.5, 0.5})},
                      outputs);
}

TEST(RecogniseRowsTest, FindsRmsNorm) {
  TestGraph t;
  const ValueId x = t.Input({2, 6});
  const Attributes mean = {
      {"fn", std::string("mean")}, {"axes", Shape{1}}, {"keepdims", int64_t{1}}};
  const ValueId variance = t.Op("Reduce", {t.Binary("mul", x, x)}, mean);
  const ValueId normal =
      t.Binary("mul", x, t.Unary("rsqrt", t.Binary("add", variance, t.Scalar(1e-6))));
  t.Output(t.Binary("mul", t.Constant({6}), normal), "y");
  ExpectRewrite(t.graph, RecogniseRows, R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,6] = Binary(%0, %0) {fn=mul}
%2:f32[2,1] = Reduce(%1) {axes=[1] fn=mean keepdims=1}
%3:f32[] = constant {1e-06}
%4:f32[2,1] = Binary(%2, %3) {fn=add}
%5:f32[2,1] = Unary(%4) {fn=rsqrt}
%6:f32[2,6] = Binary(%0, %5) {fn=mul}
%7:f32[6] = constant {0.40584368,0.04087324,0.1482114,-0.2173428,0.39435685,-0.71285594}
%8:f32[2,6] = Binary(%7, %6) {fn=mul}
output %8 y
)",
                R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,6] = Binary(%0, %0) {fn=mul}
%2:f32[2,1] = Reduce(%1) {axes=[1] fn=mean keepdims=1}
%3:f32[] = constant {1e-06}
%4:f32[2,1] = Binary(%2, %3) {fn=add}
%5:f32[2,1] = Unary(%4) {fn=rsqrt}
%6:f32[2,6] = Normalise(%0) {axes=[1] epsilon=9.999999974752427e-07 kind=rms}
%7:f32[6] = constant {0.40584368,0.04087324,0.1482114,-0.2173428,0.39435685,-0.71285594}
%8:f32[2,6] = Normalise(%0, %7) {axes=[1] epsilon=9.999999974752427e-07 kind=rms}
output %8 y
)");
}

TEST(RecogniseRowsTest, FindsSoftmax) {
  TestGraph t;
  const ValueId x = t.Input({2, 6});
  const ValueId top = t.Op(
      "Reduce", {x}, {{"fn", std::string("max")}, {"axes", Shape{-1}}, {"keepdims", int64_t{1}}});
  const ValueId power = t.Unary("exp", t.Binary("sub", x, top));
  const ValueId sum =
      t.Op("Reduce", {power},
           {{"fn", std::string("sum")}, {"axes", Shape{-1}}, {"keepdims", int64_t{1}}});
  t.Output(t.Binary("div", power, sum), "y");
  ExpectRewrite(t.graph, RecogniseRows, R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,1] = Reduce(%0) {axes=[-1] fn=max keepdims=1}
%2:f32[2,6] = Binary(%0, %1) {fn=sub}
%3:f32[2,6] = Unary(%2) {fn=exp}
%4:f32[2,1] = Reduce(%3) {axes=[-1] fn=sum keepdims=1}
%5:f32[2,6] = Binary(%3, %4) {fn=div}
output %5 y
)",
                R"(
graph test
%0:f32[2,6] = input input0
%1:f32[2,1] = Reduce(%0) {axes=[-1] fn=max keepdims=1}
%2:f32[2,6] = Binary(%0, %1) {fn=sub}
%3:f32[2,6] = Unary(%2) {fn=exp}
%4:f32[2,1] = Reduce(%3) {axes=[-1] fn=sum keepdims=1}
%5:f32[2,6] = Softmax(%0) {axis=1}
output %5 y
)");
}

const Attributes kMeanOfRows = {
    {"fn", std::string("mean")}, {"axes", Shape{1}}, {"keepdims", int64_t{1}}};

// How often Normalise occurs after the pass and RemoveDeadCode; results stay the same.
int NormalisesFound(const Graph& before, size_t nodes_left) {
  InterpreterEvaluator evaluator;
  const ir::Target target = testing::TestTarget();
  Graph after = before;
  EXPECT_TRUE(RecogniseRows(after, {evaluator, target}).ok());
  EXPECT_TRUE(RemoveDeadCode(after, {evaluator, target}).ok());
  const testing::Tensors inputs = testing::RandomInputs(before, 11);
  testing::ExpectSame(testing::RunNodes(before, inputs), testing::RunNodes(after, inputs));
  EXPECT_EQ(after.nodes.size(), nodes_left) << ToText(after);
  return static_cast<int>(
      std::ranges::count_if(after.nodes, [](const Node& n) { return n.op == "Normalise"; }));
}

TEST(RecogniseRowsTest, FindsTheFoldedLayerNormOfTensorFlow) {
  for (const bool with_scale : {false, true}) {
    TestGraph t;
    const ValueId x = t.Input({3, 6});
    const ValueId mean = t.Op("Reduce", {x}, kMeanOfRows);
    const ValueId centred = t.Binary("sub", x, mean);
    const ValueId variance = t.Op("Reduce", {t.Binary("mul", centred, centred)}, kMeanOfRows);
    ValueId factor = t.Unary("rsqrt", t.Binary("add", variance, t.Scalar(1e-3)));
    if (with_scale) factor = t.Binary("mul", factor, t.Constant({6}));
    const ValueId shift = t.Binary("sub", t.Constant({6}), t.Binary("mul", mean, factor));
    t.Output(t.Binary("add", t.Binary("mul", x, factor), shift), "y");
    EXPECT_EQ(NormalisesFound(t.graph, 1), 1) << "with a scale: " << with_scale;
  }
}

TEST(RecogniseRowsTest, FindsMeansThatLostTheirDimension) {
  TestGraph t;
  const ValueId x = t.Input({3, 6});
  Attributes dropped = kMeanOfRows;
  dropped["keepdims"] = int64_t{0};
  const ValueId mean = t.Reshape(t.Op("Reduce", {x}, dropped), {3, 1});
  const ValueId centred = t.Binary("sub", x, mean);
  const ValueId variance =
      t.Reshape(t.Op("Reduce", {t.Binary("mul", centred, centred)}, dropped), {3, 1});
  t.Output(t.Binary("div", centred, t.Unary("sqrt", t.Binary("add", variance, t.Scalar(1e-5)))),
           "y");
  EXPECT_EQ(NormalisesFound(t.graph, 1), 1);
}

TEST(RecogniseRowsTest, OtherReadersKeepWhatTheyRead) {
  TestGraph t;
  const ValueId x = t.Input({3, 6});
  const ValueId mean = t.Op("Reduce", {x}, kMeanOfRows);
  const ValueId centred = t.Binary("sub", x, mean);
  const ValueId variance = t.Op("Reduce", {t.Binary("mul", centred, centred)}, kMeanOfRows);
  const ValueId root = t.Unary("sqrt", t.Binary("add", variance, t.Scalar(1e-5)));
  t.Output(t.Binary("div", centred, root), "y");
  t.Output(t.Unary("abs", mean), "mean");
  EXPECT_EQ(NormalisesFound(t.graph, 3), 1);
}

TEST(RecogniseRowsTest, LeavesOtherRowFormulasAlone) {
  enum Kind { kOutsideEpsilon, kOtherAxis, kOtherValue, kVaryingEpsilon, kSumOfSquares };
  for (const Kind kind :
       {kOutsideEpsilon, kOtherAxis, kOtherValue, kVaryingEpsilon, kSumOfSquares}) {
    TestGraph t;
    const ValueId x = t.Input({3, 3});
    Attributes other = kMeanOfRows;
    if (kind == kOtherAxis) other["axes"] = Shape{0};
    if (kind == kSumOfSquares) other["fn"] = std::string("sum");
    const ValueId centred = t.Binary("sub", x, t.Op("Reduce", {x}, kMeanOfRows));
    const ValueId deviating = kind == kOtherValue ? t.Unary("abs", x) : centred;
    const ValueId variance = t.Op("Reduce", {t.Binary("mul", deviating, deviating)}, other);
    const ValueId epsilon = kind == kVaryingEpsilon ? t.Positive({3, 1}) : t.Scalar(1e-5);
    const ValueId root = kind == kOutsideEpsilon
                             ? t.Binary("add", t.Unary("sqrt", variance), epsilon)
                             : t.Unary("sqrt", t.Binary("add", variance, epsilon));
    t.Output(t.Binary("div", centred, root), "y");
    SCOPED_TRACE("kind " + std::to_string(kind));
    const bool normalises_centred = kind == kOtherAxis;  // an RMS norm of x - mean, along columns
    EXPECT_EQ(NormalisesFound(t.graph, normalises_centred ? 3 : t.graph.nodes.size()),
              normalises_centred ? 1 : 0);
  }
}

}  // namespace
}  // namespace hone::graph
