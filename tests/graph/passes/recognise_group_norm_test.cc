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

Attributes Instance() {
  return {{"axes", Shape{2}}, {"epsilon", 1e-5}, {"kind", std::string("instance")}};
}

/// As TorchScript writes it: 6 channels in 2 groups.
ValueId Grouped(TestGraph& t, ValueId x, const Shape& rows, Attributes attributes) {
  const ValueId scale = t.Constant({rows[1], 1}), bias = t.Constant({rows[1], 1});
  const ValueId y = t.Op("Normalise", {t.Reshape(x, rows), scale, bias}, std::move(attributes));
  return t.Reshape(y, t.Shape(x));
}

TEST(RecogniseGroupNormTest, FindsItWithScaleAndBias) {
  TestGraph t;
  const ValueId x = t.Input({1, 4, 2, 3});
  const ValueId y = Grouped(t, x, {1, 2, 12}, Instance());
  t.Output(t.Binary("add", t.Binary("mul", y, t.Constant({4, 1, 1})), t.Constant({1, 4, 1, 1})),
           "y");
  ExpectRewrite(t.graph, RecogniseGroupNorm, R"(
graph test
%0:f32[1,4,2,3] = input input0
%1:f32[1,2,12] = Reshape(%0) {shape=[1,2,12]}
%2:f32[2,1] = constant {0.40584368,0.04087324}
%3:f32[2,1] = constant {0.1482114,-0.2173428}
%4:f32[1,2,12] = Normalise(%1, %2, %3) {axes=[2] epsilon=1e-05 kind=instance}
%5:f32[1,4,2,3] = Reshape(%4) {shape=[1,4,2,3]}
%6:f32[4,1,1] = constant {0.73430496,0.10341973,0.8651449,0.91443634}
%7:f32[1,4,2,3] = Binary(%5, %6) {fn=mul}
%8:f32[1,4,1,1] = constant {0.39435685,-0.71285594,-0.85790956,-0.23763111}
%9:f32[1,4,2,3] = Binary(%7, %8) {fn=add}
output %9 y
)",
                R"(
graph test
%0:f32[1,4,2,3] = input input0
%1:f32[1,2,12] = Reshape(%0) {shape=[1,2,12]}
%2:f32[2,1] = constant {0.40584368,0.04087324}
%3:f32[2,1] = constant {0.1482114,-0.2173428}
%4:f32[1,2,12] = Normalise(%1, %2, %3) {axes=[2] epsilon=1e-05 kind=instance}
%5:f32[4] = constant {0.40584368,0.40584368,0.04087324,0.04087324}
%6:f32[4] = constant {0.1482114,0.1482114,-0.2173428,-0.2173428}
%7:f32[1,4,2,3] = GroupNorm(%0, %5, %6) {epsilon=1e-05 groups=2 layout=nchw}
%8:f32[4] = constant {0.29801303,0.041972242,0.035361275,0.037375975}
%9:f32[4] = constant {0.10883237,0.015327984,-0.18803301,-0.19874614}
%10:f32[1,4,2,3] = GroupNorm(%0, %8, %9) {epsilon=1e-05 groups=2 layout=nchw}
%11:f32[4] = constant {0.29801303,0.041972242,0.035361275,0.037375975}
%12:f32[4] = constant {0.5031892,-0.69752795,-1.0459425,-0.43637726}
%13:f32[1,4,2,3] = GroupNorm(%0, %11, %12) {epsilon=1e-05 groups=2 layout=nchw}
output %13 y
)");
}

/// Which operator makes the first output after the pass; the results stay.
std::string Becomes(const Graph& graph) {
  InterpreterEvaluator evaluator;
  Graph after = graph;
  const auto changed = RecogniseGroupNorm(after, {evaluator, TestTarget()});
  EXPECT_TRUE(changed.ok()) << changed.status();
  const auto inputs = RandomInputs(graph, 1);
  ExpectSame(RunNodes(graph, inputs), RunNodes(after, inputs));
  return after.nodes[after.values[after.outputs[0]].producer].op;
}

TEST(RecogniseGroupNormTest, KeepsWhatIsAnotherNormalisation) {
  const auto becomes = [](const Shape& shape, const Shape& rows, Attributes attributes) {
    TestGraph t;
    t.Output(Grouped(t, t.Input(shape), rows, std::move(attributes)), "y");
    return Becomes(t.graph);
  };
  EXPECT_EQ(becomes({2, 6, 5}, {2, 3, 10}, Instance()), "GroupNorm");
  EXPECT_EQ(becomes({2, 6, 5}, {2, 6, 5}, Instance()), "GroupNorm");
  Attributes rms = Instance();
  rms["kind"] = std::string("rms");
  EXPECT_EQ(becomes({2, 6, 5}, {2, 3, 10}, rms), "Reshape");
  Attributes groups = Instance();
  groups["axes"] = Shape{1};
  EXPECT_EQ(becomes({2, 6, 5}, {2, 3, 10}, groups), "Reshape");
  EXPECT_EQ(becomes({2, 6, 5}, {1, 4, 15}, Instance()), "Reshape") << "images and groups mixed";
  EXPECT_EQ(becomes({2, 6, 5}, {2, 5, 6}, Instance()), "Reshape") << "groups across channels";
  EXPECT_EQ(becomes({2, 6}, {2, 3, 2}, Instance()), "Reshape") << "no positions";
}

TEST(RecogniseGroupNormTest, OnlyWhatIsAConstantPerChannelAndReadOnceIsTakenIn) {
  for (const bool read_twice : {false, true}) {
    for (const Shape& operand : {Shape{4, 1, 1}, Shape{1, 1, 3}, Shape{}}) {
      TestGraph t;
      const ValueId y = Grouped(t, t.Input({1, 4, 2, 3}), {1, 2, 12}, Instance());
      t.Output(t.Binary("mul", y, t.Constant(operand)), "y");
      if (read_twice) t.Output(t.Unary("exp", y), "z");
      const bool taken = operand != Shape{1, 1, 3} && !read_twice;
      EXPECT_EQ(Becomes(t.graph), taken ? "GroupNorm" : "Binary");
    }
  }
}

TEST(RecogniseGroupNormTest, BothLayoutsComputeTheSame) {
  for (const Shape& shape : {Shape{2, 6, 7}, Shape{2, 6, 3, 5}, Shape{1, 6, 2, 3, 2}}) {
    for (const int64_t groups : {1, 2, 6}) {
      TestGraph t;
      const ValueId x = t.Input(shape);
      Attributes attributes = {
          {"groups", groups}, {"epsilon", 1e-3}, {"layout", std::string("nchw")}};
      const ValueId scale = t.Positive({6}), bias = t.Constant({6});
      t.Output(t.Op("GroupNorm", {x, scale, bias}, attributes), "first");
      Shape last = {0}, back = {0, static_cast<int64_t>(shape.size()) - 1};
      for (size_t d = 2; d < shape.size(); ++d) {
        last.push_back(static_cast<int64_t>(d));
        back.push_back(static_cast<int64_t>(d) - 1);
      }
      last.push_back(1);
      attributes["layout"] = std::string("nhwc");
      const ValueId y = t.Op("GroupNorm", {t.Transpose(x, last), scale, bias}, attributes);
      t.Output(t.Transpose(y, back), "last");
      const auto results = RunNodes(t.graph, RandomInputs(t.graph, 7));
      ExpectSame({results[0]}, {results[1]});
    }
  }
}

}  // namespace
}  // namespace hone::graph
