#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "graph/interpreter_evaluator.h"
#include "graph/op.h"
#include "graph/passes/passes.h"
#include "tests/graph/passes/quantised_layer.h"

namespace hone::graph {
namespace {

using ir::DType;
using testing::ChangesKeepingResults;
using testing::Dequantise;
using testing::Known;
using testing::Quantise;
using testing::TestGraph;
using testing::TestTarget;
using Shape = std::vector<int64_t>;

/// What a quantised layer is made of; zero points below zero: none.
struct Layer {
  Shape weights;
  Shape scales;  ///< as it broadcasts over the weights
  int64_t data_zero = 0, weights_zero = -1;
  Shape pads = {0, 0, 0, 0};
  bool transposed = false;
};

ValueId Product(TestGraph& t, ValueId bytes, const Layer& layer) {
  const ValueId x =
      Dequantise(t, bytes, Known(t, DType::kU8, {}, layer.data_zero, 0), t.Scalar(0.013));
  const ValueId zero =
      layer.weights_zero < 0 ? kNoValue : Known(t, DType::kI8, {}, layer.weights_zero, 0);
  const ValueId w = Dequantise(t, Known(t, DType::kI8, layer.weights, -50, 37), zero,
                               layer.scales.empty() ? t.Scalar(0.02) : t.Positive(layer.scales));
  if (layer.weights.size() == 2)
    return t.Op("MatMul", {x, w},
                {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{layer.transposed}}});
  return t.Op("Conv", {x, w, t.Constant({layer.weights[0]})},
              {{"strides", Shape{1, 1}},
               {"dilations", Shape{1, 1}},
               {"pads", layer.pads},
               {"group", int64_t{1}},
               {"layout", std::string("nchw")}});
}

/// The graph of a quantised layer, and how many products of bytes the pass makes of it; what it
/// computes stays the same.
int Recognised(const Shape& input, const Layer& layer) {
  TestGraph t;
  const ValueId y = Product(t, t.Input(input, DType::kU8), layer);
  t.Output(y, "y");
  return ChangesKeepingResults(t, RecogniseQuantised);
}

TEST(RecogniseQuantisedTest, ProductsWithScalesPerColumnOrOne) {
  EXPECT_EQ(Recognised({3, 8}, {.weights = {8, 5}, .scales = {1, 5}, .data_zero = 3}), 1);
  EXPECT_EQ(Recognised({2, 3, 8}, {.weights = {8, 5}, .data_zero = 0}), 1);
  EXPECT_EQ(Recognised({3, 8}, {.weights = {5, 8},
                                .scales = {5, 1},
                                .data_zero = 200,
                                .weights_zero = 0,
                                .transposed = true}),
            1);
}

TEST(RecogniseQuantisedTest, ConvolutionsWithAndWithoutPadding) {
  const Shape scales = {6, 1, 1, 1};
  EXPECT_EQ(Recognised({1, 4, 5, 5}, {.weights = {6, 4, 3, 3}, .scales = scales, .data_zero = 9}),
            1);
  EXPECT_EQ(
      Recognised({1, 4, 5, 5},
                 {.weights = {6, 4, 3, 3}, .scales = scales, .data_zero = 9, .pads = {1, 1, 1, 1}}),
      1);
  EXPECT_EQ(Recognised({1, 4, 5, 5}, {.weights = {6, 4, 3, 3}, .pads = {1, 1, 1, 1}}), 1);
}

TEST(RecogniseQuantisedTest, ChannelsAreFilledUpToFour) {
  const Shape pads = {1, 1, 1, 1};
  EXPECT_EQ(Recognised({1, 3, 5, 5}, {.weights = {6, 3, 3, 3}, .data_zero = 9, .pads = pads}), 1);
  EXPECT_EQ(Recognised({2, 6, 5, 5}, {.weights = {6, 6, 3, 3}, .data_zero = 0}), 1);
}

// Beside a product of bytes: alone it is no quantised model's.
TEST(RecogniseQuantisedTest, DepthwiseConvolutionsReadBytes) {
  for (const int64_t zero : {0, 77}) {
    TestGraph t;
    const ValueId bytes = t.Input({1, 8, 5, 5}, DType::kU8);
    const ValueId x = testing::FromBytes(t, bytes, 0.02, zero);
    const ValueId w = Dequantise(t, Known(t, DType::kI8, {8, 1, 3, 3}, -50, 37), kNoValue,
                                 t.Positive({8, 1, 1, 1}));
    t.Output(t.Op("Conv", {x, w, t.Constant({8})},
                  {{"strides", Shape{2, 2}},
                   {"dilations", Shape{1, 1}},
                   {"pads", Shape{1, 1, 1, 1}},
                   {"group", int64_t{8}},
                   {"layout", std::string("nchw")}}),
             "depthwise");
    t.Output(Product(t, bytes, {.weights = {6, 8, 1, 1}, .data_zero = zero}), "pointwise");
    EXPECT_EQ(ChangesKeepingResults(t, RecogniseQuantised), 1);
    const auto conv = std::ranges::find(t.graph.nodes, "Conv", &Node::op);
    ASSERT_NE(conv, t.graph.nodes.end());
    const Node& shifted = t.graph.nodes[t.graph.values[conv->inputs[0]].producer];
    EXPECT_EQ(MakeCall(t.graph, shifted).String("fn", ""), "sub");
  }
}

// Signed ones are moved to unsigned ones where they are made.
TEST(RecogniseQuantisedTest, SignedDataIsMultipliedAsUnsigned) {
  for (const int64_t zero : {0, 11}) {
    TestGraph t;
    const ValueId bytes = t.Input({1, 4, 5, 5}, DType::kI8);
    const ValueId x = Dequantise(t, bytes, Known(t, DType::kI8, {}, zero, 0), t.Scalar(0.013));
    const ValueId w = Dequantise(t, Known(t, DType::kI8, {6, 4, 3, 3}, -50, 37), kNoValue,
                                 t.Positive({6, 1, 1, 1}));
    t.Output(t.Op("Conv", {x, w},
                  {{"strides", Shape{1, 1}},
                   {"dilations", Shape{1, 1}},
                   {"pads", Shape{1, 1, 1, 1}},
                   {"group", int64_t{1}},
                   {"layout", std::string("nchw")}}),
             "y");
    EXPECT_EQ(ChangesKeepingResults(t, RecogniseQuantised), 1);
    const auto product = std::ranges::find(t.graph.nodes, "ConvInteger", &Node::op);
    ASSERT_NE(product, t.graph.nodes.end());
    EXPECT_EQ(t.graph.values[product->inputs[0]].type.dtype, DType::kU8);
  }
}

// Attention's: both operands are computed. Terms that four do not divide are filled up.
TEST(RecogniseQuantisedTest, ProductsOfTwoActivations) {
  for (const bool transposed : {false, true}) {
    for (const int64_t terms : {8, 13}) {
      TestGraph t;
      const Shape second = transposed ? Shape{2, 9, terms} : Shape{2, terms, 9};
      const ValueId a = testing::FromBytes(t, t.Input({2, 12, terms}, DType::kU8), 0.02, 7);
      const ValueId b = testing::FromBytes(t, t.Input(second, DType::kU8), 0.03, terms * 9);
      t.Output(t.Op("MatMul", {a, b},
                    {{"transpose_a", int64_t{0}}, {"transpose_b", int64_t{transposed}}}),
               "y");
      EXPECT_EQ(ChangesKeepingResults(t, RecogniseQuantised), 1);
      EXPECT_EQ(std::ranges::count(t.graph.nodes, "MatMulInteger", &Node::op), 1);
      EXPECT_EQ(std::ranges::count(t.graph.nodes, "Pad", &Node::op), terms == 13 ? 2 : 0);
    }
  }
}

// Weights with a zero point, scales of rows, terms that are no multiple of four.
TEST(RecogniseQuantisedTest, LeavesOtherProductsAlone) {
  EXPECT_EQ(Recognised({3, 8}, {.weights = {8, 5}, .scales = {1, 5}, .weights_zero = 4}), 0);
  EXPECT_EQ(Recognised({3, 8}, {.weights = {8, 5}, .scales = {8, 1}}), 0);
  EXPECT_EQ(Recognised({3, 6}, {.weights = {6, 5}, .scales = {1, 5}}), 0);
}

// Scales and zero points are tensors along the channels, so that they are none of the text.
TEST(RecogniseQuantisedTest, EqualLayersAreEqualButForTheirConstants) {
  const auto workload_text = [](double scale, int64_t zero) {
    TestGraph t;
    const ValueId bytes = t.Input({3, 8}, DType::kU8);
    const ValueId y = Product(t, bytes, {.weights = {8, 8}, .scales = {1, 8}, .data_zero = zero});
    t.Output(Quantise(t, y, scale, zero), "y");
    InterpreterEvaluator evaluator;
    const ir::Target target = TestTarget();
    const PassContext context{evaluator, target};
    for (const auto pass : {RecogniseQuantised, FoldConstants, RemoveDeadCode})
      EXPECT_TRUE(pass(t.graph, context).ok());
    std::string operators;
    for (const Node& node : t.graph.nodes) {
      operators += node.op;
      for (const ValueId input : node.inputs)
        operators +=
            t.graph.values[input].constant != nullptr ? ToText(t.graph.values[input].type) : "";
      EXPECT_TRUE(std::ranges::none_of(node.inputs, [&](ValueId input) {
        const Value& value = t.graph.values[input];
        return value.constant != nullptr && value.type.NumElements() == 1;
      })) << node.op;
    }
    return operators;
  };
  EXPECT_EQ(workload_text(0.03, 5), workload_text(0.07, 121));
}

}  // namespace
}  // namespace hone::graph
