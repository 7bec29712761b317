#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "graph/interpreter_evaluator.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/test_graph.h"

namespace hone::graph {
namespace {

using testing::ExpectSame;
using testing::RandomInputs;
using testing::RunNodes;
using testing::TestGraph;
using testing::TestTarget;
using Shape = std::vector<int64_t>;

/// Seeded weights of [out, in, …] (or [in, out]) with zeros at some places of one dimension.
ValueId Zeroed(TestGraph& t, const Shape& shape, size_t axis, const Shape& places) {
  const ValueId seeded = t.Constant(shape);
  std::vector<double> values = t.graph.values[seeded].constant->AsDoubles();
  int64_t inner = 1;
  for (size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) / inner % shape[axis];
    if (std::ranges::find(places, at) != places.end()) values[i] = 0;
  }
  return t.graph.AddConstant(MakeConstant(ir::DType::kF32, shape, values));
}

ValueId Product(TestGraph& t, ValueId a, ValueId b) {
  return t.Op("MatMul", {a, b}, {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{0}}});
}

ValueId Convolution(TestGraph& t, ValueId x, ValueId w, ValueId bias) {
  return t.Op("Conv", {x, w, bias},
              {{"strides", Shape{1, 1}},
               {"dilations", Shape{1, 1}},
               {"pads", Shape{1, 1, 1, 1}},
               {"group", int64_t{1}},
               {"layout", std::string("nchw")}});
}

/// Runs the pass, after which the results are the same to the last bit; gives the changes.
int Dropped(TestGraph& t) {
  const auto inputs = RandomInputs(t.graph, 3);
  const auto before = RunNodes(t.graph, inputs);
  InterpreterEvaluator evaluator;
  const ir::Target target = TestTarget();
  const auto changes = DropZeros(t.graph, {evaluator, target});
  EXPECT_TRUE(changes.ok()) << changes.status();
  ExpectSame(before, RunNodes(t.graph, inputs));
  EXPECT_EQ(DropZeros(t.graph, {evaluator, target}).value_or(-1), 0);
  return changes.value_or(-1);
}

/// A hidden layer of 12: three of its rows are read by nobody, two have no weights.
TEST(DropZerosTest, HiddenRowsThatNobodyReadsOrWritesDisappear) {
  for (const bool biased : {false, true}) {
    TestGraph t;
    ValueId h = Product(t, t.Input({3, 8}), Zeroed(t, {8, 12}, 1, {0, 5}));
    if (biased) h = t.Binary("add", h, Zeroed(t, {12}, 0, {5}));
    const ValueId hidden = t.Op("Activation", {h}, {{"fn", std::string("gelu")}});
    t.Output(Product(t, hidden, Zeroed(t, {12, 6}, 0, {2, 7, 11})), "y");
    EXPECT_EQ(Dropped(t), 1);
    // With a bias the first one is a number that the second product reads.
    EXPECT_EQ(t.Shape(hidden), (Shape{3, biased ? 8 : 7}));
  }
}

TEST(DropZerosTest, ChannelsOfConvolutionsDisappear) {
  TestGraph t;
  const ValueId c = Convolution(t, t.Input({1, 3, 6, 6}), Zeroed(t, {10, 3, 3, 3}, 0, {4}),
                                Zeroed(t, {10}, 0, {4}));
  const ValueId r = t.Relu(t.Binary("mul", c, t.Constant({1, 10, 1, 1})));
  const ValueId y = Convolution(t, r, Zeroed(t, {5, 10, 3, 3}, 1, {9}), t.Constant({5}));
  t.Output(y, "y");
  EXPECT_EQ(Dropped(t), 1);
  EXPECT_EQ(t.Shape(r), (Shape{1, 8, 6, 6}));
}

TEST(DropZerosTest, LeavesWhatOthersReadAndWhatIsNoZeroAlone) {
  TestGraph t;
  const ValueId h = Product(t, t.Input({3, 8}), Zeroed(t, {8, 12}, 1, {0}));
  const ValueId e = t.Unary("exp", h);
  t.Output(Product(t, e, t.Constant({12, 6})), "exp(0) is one");
  const ValueId shared = Product(t, t.Input({3, 8}), Zeroed(t, {8, 12}, 1, {0}));
  t.Output(Product(t, shared, t.Constant({12, 6})), "y");
  t.Output(shared, "read by others");
  EXPECT_EQ(Dropped(t), 0);
}

}  // namespace
}  // namespace hone::graph
