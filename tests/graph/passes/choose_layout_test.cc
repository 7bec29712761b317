#include <string>

#include "gtest/gtest.h"

#include "graph/interpreter_evaluator.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectRewrite;
using testing::TestGraph;
using Shape = std::vector<int64_t>;

TEST(ChooseLayoutTest, KeepsAResidualBlockInOneRegion) {
  TestGraph t;
  const ValueId x = t.Input({1, 3, 8, 8});
  const ValueId y = t.Relu(t.Conv(x, 4, 3, 1, 1));
  const ValueId z = t.Binary("add", t.Conv(y, 4, 3, 1, 1), y);
  const ValueId scaled = t.Binary("mul", z, t.Constant({4, 1, 1}));
  t.Output(t.Unary("tanh", scaled), "y");
  ExpectRewrite(t.graph, ChooseLayout, R"(
graph test
%0:f32[1,3,8,8] = input input0
%1:f32[4,3,3,3] = constant
%2:f32[4] = constant {-0.52766436,-0.5293867,-0.82103914,0.5362612}
%3:f32[1,4,8,8] = Conv(%0, %1, %2) {dilations=[1,1] group=1 layout=nchw pads=[1,1,1,1]
    strides=[1,1]}
%4:f32[] = constant {0}
%5:f32[1,4,8,8] = Binary(%3, %4) {fn=max}
%6:f32[4,4,3,3] = constant
%7:f32[4] = constant {-0.08700961,0.5830339,0.8849254,-0.21332173}
%8:f32[1,4,8,8] = Conv(%5, %6, %7) {dilations=[1,1] group=1 layout=nchw pads=[1,1,1,1]
    strides=[1,1]}
%9:f32[1,4,8,8] = Binary(%8, %5) {fn=add}
%10:f32[4,1,1] = constant {-0.55083704,-0.5127385,-0.4254925,-0.7656206}
%11:f32[1,4,8,8] = Binary(%9, %10) {fn=mul}
%12:f32[1,4,8,8] = Unary(%11) {fn=tanh}
output %12 y
)",
                R"(
graph test
%0:f32[1,3,8,8] = input input0
%1:f32[1,8,8,3] = Transpose(%0) {perm=[0,2,3,1]}
%2:f32[4,3,3,3] = constant
%3:f32[4] = constant {-0.52766436,-0.5293867,-0.82103914,0.5362612}
%4:f32[1,8,8,4] = Conv(%1, %2, %3) {dilations=[1,1] group=1 layout=nhwc pads=[1,1,1,1]
    strides=[1,1]}
%5:f32[] = constant {0}
%6:f32[1,8,8,4] = Binary(%4, %5) {fn=max}
%7:f32[4,4,3,3] = constant
%8:f32[4] = constant {-0.08700961,0.5830339,0.8849254,-0.21332173}
%9:f32[1,8,8,4] = Conv(%6, %7, %8) {dilations=[1,1] group=1 layout=nhwc pads=[1,1,1,1]
    strides=[1,1]}
%10:f32[1,8,8,4] = Binary(%9, %6) {fn=add}
%11:f32[4,1,1] = constant {-0.55083704,-0.5127385,-0.4254925,-0.7656206}
%12:f32[1,4,1,1] = Reshape(%11) {shape=[1,4,1,1]}
%13:f32[1,1,1,4] = Reshape(%12) {shape=[1,1,1,4]}
%14:f32[1,8,8,4] = Binary(%10, %13) {fn=mul}
%15:f32[1,8,8,4] = Unary(%14) {fn=tanh}
%16:f32[1,4,8,8] = Transpose(%15) {perm=[0,3,1,2]}
output %16 y
)");
}

TEST(ChooseLayoutTest, RemapsAxes) {
  TestGraph t;
  const ValueId y = t.Conv(t.Input({1, 3, 6, 5}), 4, 1);
  const ValueId both = t.Op("Concat", {y, t.Relu(y)}, {{"axis", int64_t{1}}});
  const ValueId padded = t.Op("Pad", {both},
                              {{"begin", Shape{0, 0, 1, 0}},
                               {"end", Shape{0, 1, 0, 0}},
                               {"mode", std::string("constant")}});
  const ValueId part = t.Op(
      "Slice", {padded},
      {{"starts", Shape{0, 2, 0, 1}}, {"steps", Shape{1, 1, 1, 1}}, {"sizes", Shape{1, 6, 7, 4}}});
  const ValueId soft = t.Op("Softmax", {part}, {{"axis", int64_t{1}}});
  t.Output(t.Op("Reduce", {soft},
                {{"fn", std::string("mean")}, {"axes", Shape{2, 3}}, {"keepdims", int64_t{0}}}),
           "y");
  ExpectRewrite(t.graph, ChooseLayout, R"(
graph test
%0:f32[1,3,6,5] = input input0
%1:f32[4,3,1,1] = constant
%2:f32[4] = constant {0.8655454,0.33819357,0.19986682,0.78108454}
%3:f32[1,4,6,5] = Conv(%0, %1, %2) {dilations=[1,1] group=1 layout=nchw pads=[0,0,0,0]
    strides=[1,1]}
%4:f32[] = constant {0}
%5:f32[1,4,6,5] = Binary(%3, %4) {fn=max}
%6:f32[1,8,6,5] = Concat(%3, %5) {axis=1}
%7:f32[1,9,7,5] = Pad(%6) {begin=[0,0,1,0] end=[0,1,0,0] mode=constant}
%8:f32[1,6,7,4] = Slice(%7) {sizes=[1,6,7,4] starts=[0,2,0,1] steps=[1,1,1,1]}
%9:f32[1,6,7,4] = Softmax(%8) {axis=1}
%10:f32[1,6] = Reduce(%9) {axes=[2,3] fn=mean keepdims=0}
output %10 y
)",
                R"(
graph test
%0:f32[1,3,6,5] = input input0
%1:f32[1,6,5,3] = Transpose(%0) {perm=[0,2,3,1]}
%2:f32[4,3,1,1] = constant
%3:f32[4] = constant {0.8655454,0.33819357,0.19986682,0.78108454}
%4:f32[1,6,5,4] = Conv(%1, %2, %3) {dilations=[1,1] group=1 layout=nhwc pads=[0,0,0,0]
    strides=[1,1]}
%5:f32[] = constant {0}
%6:f32[1,6,5,4] = Binary(%4, %5) {fn=max}
%7:f32[1,6,5,8] = Concat(%4, %6) {axis=3}
%8:f32[1,7,5,9] = Pad(%7) {begin=[0,1,0,0] end=[0,0,0,1] mode=constant}
%9:f32[1,7,4,6] = Slice(%8) {sizes=[1,7,4,6] starts=[0,0,1,2] steps=[1,1,1,1]}
%10:f32[1,7,4,6] = Softmax(%9) {axis=3}
%11:f32[1,6] = Reduce(%10) {axes=[1,2] fn=mean keepdims=0}
output %11 y
)");
}

TEST(ChooseLayoutTest, ResizesChannelsLast) {
  TestGraph t;
  const ValueId y = t.Conv(t.Input({1, 3, 4, 4}), 2, 1);
  t.Output(t.Op("Resize", {t.Relu(y)},
                {{"sizes", Shape{1, 2, 8, 6}},
                 {"scales", std::vector<double>{1, 1, 2, 1.5}},
                 {"mode", std::string("linear")}}),
           "y");
  ExpectRewrite(t.graph, ChooseLayout, R"(
graph test
%0:f32[1,3,4,4] = input input0
%1:f32[2,3,1,1] = constant {0.40584368,0.04087324,0.1482114,-0.2173428,0.39435685,-0.71285594}
%2:f32[2] = constant {-0.85790956,-0.23763111}
%3:f32[1,2,4,4] = Conv(%0, %1, %2) {dilations=[1,1] group=1 layout=nchw pads=[0,0,0,0]
    strides=[1,1]}
%4:f32[] = constant {0}
%5:f32[1,2,4,4] = Binary(%3, %4) {fn=max}
%6:f32[1,2,8,6] = Resize(%5) {mode=linear scales=[1,1,2,1.5] sizes=[1,2,8,6]}
output %6 y
)",
                R"(
graph test
%0:f32[1,3,4,4] = input input0
%1:f32[1,4,4,3] = Transpose(%0) {perm=[0,2,3,1]}
%2:f32[2,3,1,1] = constant {0.40584368,0.04087324,0.1482114,-0.2173428,0.39435685,-0.71285594}
%3:f32[2] = constant {-0.85790956,-0.23763111}
%4:f32[1,4,4,2] = Conv(%1, %2, %3) {dilations=[1,1] group=1 layout=nhwc pads=[0,0,0,0]
    strides=[1,1]}
%5:f32[] = constant {0}
%6:f32[1,4,4,2] = Binary(%4, %5) {fn=max}
%7:f32[1,8,6,2] = Resize(%6) {mode=linear scales=[1,2,1.5,1] sizes=[1,8,6,2]}
%8:f32[1,2,8,6] = Transpose(%7) {perm=[0,3,1,2]}
output %8 y
)");
}

TEST(ChooseLayoutTest, FlattensAfterGlobalPoolingWithoutATranspose) {
  TestGraph t;
  const ValueId y = t.Conv(t.Input({1, 3, 4, 4}), 8, 3);
  const ValueId pooled =
      t.Op("Reduce", {y},
           {{"fn", std::string("mean")}, {"axes", Shape{2, 3}}, {"keepdims", int64_t{1}}});
  t.Output(t.Linear(t.Reshape(pooled, {1, 8}), 2), "y");
  ExpectRewrite(t.graph, ChooseLayout, R"(
graph test
%0:f32[1,3,4,4] = input input0
%1:f32[8,3,3,3] = constant
%2:f32[8] = constant
    {-0.007940717,0.58406854,0.5639925,0.9129295,0.6425678,-0.28432986,-0.07436769,-0.4741364}
%3:f32[1,8,2,2] = Conv(%0, %1, %2) {dilations=[1,1] group=1 layout=nchw pads=[0,0,0,0]
    strides=[1,1]}
%4:f32[1,8,1,1] = Reduce(%3) {axes=[2,3] fn=mean keepdims=1}
%5:f32[1,8] = Reshape(%4) {shape=[1,8]}
%6:f32[8,2] = constant
%7:f32[1,2] = MatMul(%5, %6)
%8:f32[2] = constant {-0.43301746,-0.57934326}
%9:f32[1,2] = Binary(%7, %8) {fn=add}
output %9 y
)",
                R"(
graph test
%0:f32[1,3,4,4] = input input0
%1:f32[1,4,4,3] = Transpose(%0) {perm=[0,2,3,1]}
%2:f32[8,3,3,3] = constant
%3:f32[8] = constant
    {-0.007940717,0.58406854,0.5639925,0.9129295,0.6425678,-0.28432986,-0.07436769,-0.4741364}
%4:f32[1,2,2,8] = Conv(%1, %2, %3) {dilations=[1,1] group=1 layout=nhwc pads=[0,0,0,0]
    strides=[1,1]}
%5:f32[1,1,1,8] = Reduce(%4) {axes=[1,2] fn=mean keepdims=1}
%6:f32[1,8,1,1] = Reshape(%5) {shape=[1,8,1,1]}
%7:f32[1,8] = Reshape(%6) {shape=[1,8]}
%8:f32[8,2] = constant
%9:f32[1,2] = MatMul(%7, %8)
%10:f32[2] = constant {-0.43301746,-0.57934326}
%11:f32[1,2] = Binary(%9, %10) {fn=add}
output %11 y
)");
}

TEST(ChooseLayoutTest, CancelsTransposesOfTokens) {
  TestGraph t;
  const ValueId patches = t.Conv(t.Input({1, 3, 8, 8}), 6, 2, 2);
  const ValueId tokens = t.LayerNorm(t.Transpose(t.Reshape(patches, {1, 6, 16}), {0, 2, 1}));
  const ValueId image = t.Reshape(t.Transpose(tokens, {0, 2, 1}), {1, 6, 4, 4});
  t.Output(t.Relu(t.Conv(image, 4, 1)), "y");
  ExpectRewrite(t.graph, ChooseLayout, R"(
graph test
%0:f32[1,3,8,8] = input input0
%1:f32[6,3,2,2] = constant
%2:f32[6] = constant {-0.17036031,-0.49648312,-0.80189073,0.63800997,-0.44912094,0.9624966}
%3:f32[1,6,4,4] = Conv(%0, %1, %2) {dilations=[1,1] group=1 layout=nchw pads=[0,0,0,0]
    strides=[2,2]}
%4:f32[1,6,16] = Reshape(%3) {shape=[1,6,16]}
%5:f32[1,16,6] = Transpose(%4) {perm=[0,2,1]}
%6:f32[6] = constant {1.4996798,1.0392625,0.89824045,1.3265053,0.51785135,1.4926482}
%7:f32[6] = constant {-0.16084754,0.64255923,-0.3693764,-0.005122737,0.40693578,0.01645087}
%8:f32[1,16,6] = Normalise(%5, %6, %7) {axes=[2] epsilon=1e-05 kind=layer}
%9:f32[1,6,16] = Transpose(%8) {perm=[0,2,1]}
%10:f32[1,6,4,4] = Reshape(%9) {shape=[1,6,4,4]}
%11:f32[4,6,1,1] = constant
%12:f32[4] = constant {0.079192996,-0.41477168,0.5751337,0.56042266}
%13:f32[1,4,4,4] = Conv(%10, %11, %12) {dilations=[1,1] group=1 layout=nchw pads=[0,0,0,0]
    strides=[1,1]}
%14:f32[] = constant {0}
%15:f32[1,4,4,4] = Binary(%13, %14) {fn=max}
output %15 y
)",
                R"(
graph test
%0:f32[1,3,8,8] = input input0
%1:f32[1,8,8,3] = Transpose(%0) {perm=[0,2,3,1]}
%2:f32[6,3,2,2] = constant
%3:f32[6] = constant {-0.17036031,-0.49648312,-0.80189073,0.63800997,-0.44912094,0.9624966}
%4:f32[1,4,4,6] = Conv(%1, %2, %3) {dilations=[1,1] group=1 layout=nhwc pads=[0,0,0,0]
    strides=[2,2]}
%5:f32[1,16,6] = Reshape(%4) {shape=[1,16,6]}
%6:f32[6] = constant {1.4996798,1.0392625,0.89824045,1.3265053,0.51785135,1.4926482}
%7:f32[6] = constant {-0.16084754,0.64255923,-0.3693764,-0.005122737,0.40693578,0.01645087}
%8:f32[1,16,6] = Normalise(%5, %6, %7) {axes=[2] epsilon=1e-05 kind=layer}
%9:f32[1,4,4,6] = Reshape(%8) {shape=[1,4,4,6]}
%10:f32[4,6,1,1] = constant
%11:f32[4] = constant {0.079192996,-0.41477168,0.5751337,0.56042266}
%12:f32[1,4,4,4] = Conv(%9, %10, %11) {dilations=[1,1] group=1 layout=nhwc pads=[0,0,0,0]
    strides=[1,1]}
%13:f32[] = constant {0}
%14:f32[1,4,4,4] = Binary(%12, %13) {fn=max}
%15:f32[1,4,4,4] = Transpose(%14) {perm=[0,3,1,2]}
output %15 y
)");
}

// x with its channels shuffled between two groups, as ShuffleNet does.
ValueId Shuffled(TestGraph& t, ValueId x) {
  const Shape shape = t.Shape(x);
  const Shape split = {shape[0], 2, shape[1] / 2, shape[2], shape[3]};
  return t.Reshape(t.Transpose(t.Reshape(x, split), {0, 2, 1, 3, 4}), shape);
}

TEST(ChooseLayoutTest, ShufflesChannelsWhereTheyStandLast) {
  TestGraph t;
  const ValueId x = t.Conv(t.Input({1, 2, 3, 3}), 4, 1);
  t.Output(t.Conv(Shuffled(t, x), 2, 1), "y");
  ExpectRewrite(t.graph, ChooseLayout, R"(
graph test
%0:f32[1,2,3,3] = input input0
%1:f32[4,2,1,1] = constant
    {0.40584368,0.04087324,0.1482114,-0.2173428,0.39435685,-0.71285594,-0.85790956,-0.23763111}
%2:f32[4] = constant {0.73430496,0.10341973,0.8651449,0.91443634}
%3:f32[1,4,3,3] = Conv(%0, %1, %2) {dilations=[1,1] group=1 layout=nchw pads=[0,0,0,0]
    strides=[1,1]}
%4:f32[1,2,2,3,3] = Reshape(%3) {shape=[1,2,2,3,3]}
%5:f32[1,2,2,3,3] = Transpose(%4) {perm=[0,2,1,3,4]}
%6:f32[1,4,3,3] = Reshape(%5) {shape=[1,4,3,3]}
%7:f32[2,4,1,1] = constant
    {0.8655454,0.33819357,0.19986682,0.78108454,-0.8390881,-0.017280128,-0.90835965,-0.87245125}
%8:f32[2] = constant {-0.07353961,-0.0070524593}
%9:f32[1,2,3,3] = Conv(%6, %7, %8) {dilations=[1,1] group=1 layout=nchw pads=[0,0,0,0]
    strides=[1,1]}
output %9 y
)",
                R"(
graph test
%0:f32[1,2,3,3] = input input0
%1:f32[1,3,3,2] = Transpose(%0) {perm=[0,2,3,1]}
%2:f32[4,2,1,1] = constant
    {0.40584368,0.04087324,0.1482114,-0.2173428,0.39435685,-0.71285594,-0.85790956,-0.23763111}
%3:f32[4] = constant {0.73430496,0.10341973,0.8651449,0.91443634}
%4:f32[1,3,3,4] = Conv(%1, %2, %3) {dilations=[1,1] group=1 layout=nhwc pads=[0,0,0,0]
    strides=[1,1]}
%5:f32[1,3,3,2,2] = Reshape(%4) {shape=[1,3,3,2,2]}
%6:f32[1,3,3,2,2] = Transpose(%5) {perm=[0,1,2,4,3]}
%7:f32[1,3,3,4] = Reshape(%6) {shape=[1,3,3,4]}
%8:f32[2,4,1,1] = constant
    {0.8655454,0.33819357,0.19986682,0.78108454,-0.8390881,-0.017280128,-0.90835965,-0.87245125}
%9:f32[2] = constant {-0.07353961,-0.0070524593}
%10:f32[1,3,3,2] = Conv(%7, %8, %9) {dilations=[1,1] group=1 layout=nhwc pads=[0,0,0,0]
    strides=[1,1]}
%11:f32[1,2,3,3] = Transpose(%10) {perm=[0,3,1,2]}
output %11 y
)");
}

TEST(ChooseLayoutTest, AHalfShuffleIsNone) {
  TestGraph t;
  const ValueId x = t.Conv(t.Input({1, 2, 3, 3}), 4, 1);
  const ValueId split = t.Reshape(x, {1, 2, 2, 3, 3});
  t.Output(split, "split");
  const ValueId shuffled = t.Reshape(t.Transpose(split, {0, 2, 1, 3, 4}), {1, 4, 3, 3});
  t.Output(t.Conv(shuffled, 2, 1), "y");
  Graph after = t.graph;
  InterpreterEvaluator evaluator;
  const ir::Target target = testing::TestTarget();
  ASSERT_TRUE(ChooseLayout(after, {evaluator, target}).ok());
  const auto inputs = testing::RandomInputs(t.graph, 5);
  testing::ExpectSame(testing::RunNodes(t.graph, inputs), testing::RunNodes(after, inputs));
}

// The layouts of the graph's convolutions, in order.
std::string LayoutsOf(const Graph& graph) {
  std::string layouts;
  for (const Node& node : graph.nodes) {
    if (node.op != "Conv" && node.op != "ConvTranspose") continue;
    layouts += (layouts.empty() ? "" : " ") + MakeCall(graph, node).String("layout", "");
  }
  return layouts;
}

std::string LayoutsOfChosen(TestGraph& t) {
  Graph after = t.graph;
  InterpreterEvaluator evaluator;
  const ir::Target target = testing::TestTarget();
  EXPECT_TRUE(ChooseLayout(after, {evaluator, target}).ok());
  const auto inputs = testing::RandomInputs(t.graph, 5);
  testing::ExpectSame(testing::RunNodes(t.graph, inputs), testing::RunNodes(after, inputs));
  return LayoutsOf(after);
}

// What draws pictures ends with three channels, which fill no vector.
TEST(ChooseLayoutTest, FewChannelsOfManyAreMadeRowByRow) {
  TestGraph t;
  const ValueId x = t.Relu(t.Conv(t.Input({1, 2, 3, 32}), 16, 1));
  t.Output(t.Unary("tanh", t.Conv(x, 3, 3, 1, 1)), "y");
  EXPECT_EQ(LayoutsOfChosen(t), "nhwc nchw");
}

TEST(ChooseLayoutTest, FewChannelsOfFewOrOfLittleWorkStayWithTheOthers) {
  struct Layer {
    int64_t in, out, kernel, stride, width;
  };
  // A single tap; few channels in; a narrow image; five channels; a stride that skips most work.
  for (const Layer layer : {Layer{16, 3, 1, 1, 32}, Layer{8, 3, 3, 1, 32}, Layer{16, 3, 3, 1, 16},
                            Layer{16, 5, 3, 1, 32}, Layer{16, 3, 3, 2, 64}}) {
    TestGraph t;
    const ValueId x = t.Conv(t.Input({1, 2, 3, layer.width}), layer.in, 1);
    t.Output(t.Conv(x, layer.out, layer.kernel, layer.stride, layer.kernel / 2), "y");
    EXPECT_EQ(LayoutsOfChosen(t), "nhwc nhwc")
        << layer.in << " to " << layer.out << " channels, kernel " << layer.kernel;
  }
}

TEST(ChooseLayoutTest, FewChannelsOfADeconvolutionAreMadeRowByRowToo) {
  for (const int64_t out : {3, 5}) {
    TestGraph t;
    const ValueId x = t.Conv(t.Input({1, 2, 3, 32}), 16, 1);
    t.Output(t.Op("ConvTranspose", {x, t.Constant({16, out, 4, 4})}, {{"strides", Shape{2, 2}}}),
             "y");
    EXPECT_EQ(LayoutsOfChosen(t), out == 3 ? "nhwc " : "nhwc nhwc");
  }
}

// Vectors along the channels would be of several groups.
TEST(ChooseLayoutTest, GroupsOfOtherThanEightChannelsAreMadeRowByRow) {
  for (const int64_t of_group : {1, 2, 3, 4, 6, 8, 12, 24}) {
    TestGraph t;
    const ValueId x = t.Conv(t.Input({1, 2, 5, 5}), 2 * of_group, 1);
    t.Output(t.Conv(x, 2 * of_group, 3, 1, 1, 2), "y");
    const bool uneven = of_group == 3 || of_group == 6 || of_group == 12;
    EXPECT_EQ(LayoutsOfChosen(t), uneven ? "nhwc nchw" : "nhwc nhwc") << of_group;
  }
}

}  // namespace
}  // namespace hone::graph
