// Which weights of a layer become zero.

#include "graph/onnx_prune/pruned_weights.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "graph/onnx_prune/prune_structure.h"
#include "graph/onnx_quantise/data_statistics.h"

namespace hone::graph::onnx_prune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = PruneStructure::Kind;

Layer MatrixLayer(int64_t terms, int64_t columns, const std::vector<double>& values) {
  Layer layer;
  layer.name = "m";
  layer.op = "MatMul";
  layer.weights_data = MakeConstant(ir::DType::kF32, {terms, columns}, values);
  layer.columns = columns;
  layer.terms = layer.channels = terms;
  return layer;
}

Layer Convolution(int64_t columns, int64_t channels, int64_t window,
                  const std::vector<double>& values) {
  Layer layer;
  layer.name = "c";
  layer.op = "Conv";
  layer.weights_data = MakeConstant(ir::DType::kF32, {columns, channels, window}, values);
  layer.by_rows = true;
  layer.columns = columns;
  layer.terms = channels * window;
  layer.window = window;
  layer.channels = channels;
  return layer;
}

PruneStructure Parsed(std::string_view text) {
  const auto structure = ParsePruneStructure(text);
  EXPECT_TRUE(structure.has_value()) << text;
  return structure.value_or(PruneStructure{});
}

TEST(PruneStructureTest, ReadsItsWords) {
  EXPECT_EQ(Parsed("none").kind, Kind::kNone);
  EXPECT_EQ(Parsed("channel").kind, Kind::kChannel);
  EXPECT_EQ(Parsed("block:2x16").terms, 2);
  EXPECT_EQ(Parsed("block:2x16").columns, 16);
  EXPECT_EQ(Parsed("2:4").kept, 2);
  EXPECT_EQ(Parsed("1:8").group, 8);
  for (const char* wrong : {"", "block", "block:", "block:0x4", "block:2x", "block:2x3x4", "4:4",
                            "0:4", "-1:4", "2:65", "2:4x", "rows"})
    EXPECT_FALSE(ParsePruneStructure(wrong).has_value()) << wrong;
}

TEST(PrunedWeightsTest, TheSmallestOfTheLayerBecomeZero) {
  const Layer layer = MatrixLayer(2, 3, {1, -2, 0.5, -4, 0.25, 3});
  EXPECT_THAT(PrunedWeights(layer, {}, 0.5, {}), ElementsAre(0, -2, 0, -4, 0, 3));
  EXPECT_THAT(PrunedWeights(layer, {}, 0, {}), ElementsAre(1, -2, 0.5, -4, 0.25, 3));
}

TEST(PrunedWeightsTest, OfEqualOnesAsManyAsWereAskedFor) {
  EXPECT_THAT(PrunedWeights(MatrixLayer(2, 2, {1, 1, 1, 1}), {}, 0.5, {}), ElementsAre(0, 0, 1, 1));
}

// Wanda by hand: |w| · ‖x‖ of
//   [ 4 1 ]   norms 1, 2, 10       [ 4  1 ]
//   [ 1 3 ]                   →    [ 2  6 ]     half of three terms, rounded up, a column
//   [ 0.1 .5]                      [ 1  5 ]
TEST(PrunedWeightsTest, DataDecideWithinEachColumn) {
  const Layer layer = MatrixLayer(3, 2, {4, 1, 1, 3, 0.1, 0.5});
  EXPECT_THAT(PrunedWeights(layer, {}, 0.5, {1, 2, 10}), ElementsAre(4, 0, 0, 3, 0, 0));
  EXPECT_THAT(PrunedWeights(layer, {}, 1.0 / 3, {1, 2, 10}), ElementsAre(4, 0, 1, 3, 0, 0.5F));
  // The sizes alone say otherwise.
  EXPECT_THAT(PrunedWeights(layer, {}, 0.5, {}), ElementsAre(4, 0, 1, 3, 0, 0));
}

TEST(PrunedWeightsTest, NormsAreOfAllThatWasSeen) {
  const onnx_quantise::InputGroup group = {"x", {0}, 2, {2}};
  onnx_quantise::DataStatistics statistics(group);
  const std::vector<float> first = {3, 1, 0, 1}, second = {4, -1};
  statistics.Add(first, 1);
  statistics.Add(second, 1);
  EXPECT_THAT(statistics.Norms(), ElementsAre(5, std::sqrt(3.0)));
}

TEST(PrunedWeightsTest, AConvolutionsTermsMeetTheirChannels) {
  // Two channels of two places each; the second channel carries nothing.
  const Layer layer = Convolution(1, 2, 2, {1, 2, 30, 40});
  EXPECT_THAT(PrunedWeights(layer, {}, 0.5, {1, 0}), ElementsAre(1, 2, 0, 0));
}

TEST(PrunedWeightsTest, BlocksBecomeZeroTogether) {
  // [terms 2][columns 4], blocks of 1 x 2: roots of sums 25, 2 | 1, 18.
  const Layer layer = MatrixLayer(2, 4, {3, 4, 1, 1, 0, 1, 3, 3});
  EXPECT_THAT(PrunedWeights(layer, Parsed("block:1x2"), 0.5, {}),
              ElementsAre(3, 4, 0, 0, 0, 0, 3, 3));
  // Two terms by one column.
  EXPECT_THAT(PrunedWeights(layer, Parsed("block:2x1"), 0.25, {}),
              ElementsAre(0, 4, 1, 1, 0, 1, 3, 3));
}

TEST(PrunedWeightsTest, TwoOfFourNeighbouringChannelsRemain) {
  EXPECT_THAT(PrunedWeights(MatrixLayer(4, 1, {1, -4, 3, 2}), Parsed("2:4"), 0.5, {}),
              ElementsAre(0, -4, 3, 0));
  // A convolution's groups are at one place of the window: channels are two elements apart.
  EXPECT_THAT(PrunedWeights(Convolution(1, 4, 2, {1, 8, 2, 7, 3, 6, 4, 5}), Parsed("2:4"), 0.5, {}),
              ElementsAre(0, 8, 0, 7, 3, 0, 4, 0));
}

TEST(PrunedWeightsTest, SaysWhatDoesNotFit) {
  const Layer layer = MatrixLayer(6, 3, std::vector<double>(18, 1));
  EXPECT_THAT(CheckFits(layer, Parsed("block:4x1"), 0.5).message(),
              HasSubstr("block:4x1: MatMul m has sums of 6 terms in 3 columns"));
  EXPECT_THAT(CheckFits(layer, Parsed("2:4"), 0.5).message(),
              HasSubstr("2:4: MatMul m has sums over 6 input channels"));
  EXPECT_THAT(CheckFits(layer, {}, 0.95).message(),
              HasSubstr("--sparsity 0.95 leaves no weight of MatMul m: each column has 6 weights"));
  EXPECT_TRUE(CheckFits(layer, {}, 0.9).ok());
}

}  // namespace
}  // namespace hone::graph::onnx_prune
