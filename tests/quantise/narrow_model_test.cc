// What `hone quantize` computes of ranges, weights and means, and which models it takes.

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "base/file.h"
#include "graph/onnx_quantise/assignment.h"
#include "graph/onnx_quantise/data_statistics.h"
#include "graph/onnx_quantise/quantised_model.h"
#include "graph/onnx_quantise/smoothing.h"
#include "graph/onnx_quantise/source_model.h"
#include "tests/graph/onnx_model.h"

namespace hone::graph::onnx_quantise {
namespace {

using ::testing::HasSubstr;

TEST(ByteGridTest, HoldsItsRangeAndZeroExactly) {
  // By hand: 3 / 255 a step, zero at the 85th number.
  const ByteGrid grid = GridFor(-1, 2);
  EXPECT_FLOAT_EQ(grid.scale, 3.0F / 255);
  EXPECT_EQ(grid.zero, 85);
  EXPECT_EQ(grid.Restored(0), 0);
  EXPECT_NEAR(grid.Restored(2), 2, 1e-6);
  EXPECT_NEAR(grid.Restored(-5), -1, 1e-6) << "what lies beyond is clipped";
  EXPECT_EQ(GridFor(0.5, 2).zero, 0) << "zero is always among the numbers";
  EXPECT_EQ(GridFor(0, 0), ByteGrid{}) << "a scale is never zero";
  EXPECT_EQ(GridFor(0, 1e-40), ByteGrid{}) << "nor one that f32 holds badly";
}

class RangeMethodTest : public ::testing::Test {
 protected:
  /// Mean squared error of a normal sample and a few outliers, after a grid.
  double Error(const ByteGrid& grid) const {
    double error = 0;
    for (const float x : values_) {
      const double d = static_cast<double>(grid.Restored(x)) - static_cast<double>(x);
      error += d * d;
    }
    return error;
  }
  void SetUp() override {
    Random random(11);
    for (int i = 0; i < 20'000; ++i) {
      double sum = -6;
      for (int k = 0; k < 12; ++k) sum += random.Uniform();
      values_.push_back(static_cast<float>(sum));
    }
    values_[17] = 40;
    for (const float x : values_) histogram_.Add(x);
  }
  std::vector<float> values_;
  RangeHistogram histogram_{-6, 40};
};

TEST_F(RangeMethodTest, MinMaxKeepsAll) {
  EXPECT_EQ(histogram_.Grid(RangeMethod::kMinMax, 0), GridFor(-6, 40));
}

TEST_F(RangeMethodTest, PercentileLeavesTheOutliersOut) {
  const ByteGrid grid = histogram_.Grid(RangeMethod::kPercentile, 99.9);
  std::vector<float> sorted = values_;
  std::sort(sorted.begin(), sorted.end());
  const ByteGrid expected =
      GridFor(static_cast<double>(sorted[20]), static_cast<double>(sorted[sorted.size() - 21]));
  EXPECT_NEAR(grid.scale, expected.scale, 0.02 * static_cast<double>(expected.scale));
}

TEST_F(RangeMethodTest, MseIsNoWorseThanAnyShareOfTheRange) {
  const double best = Error(histogram_.Grid(RangeMethod::kMse, 0));
  for (double share = 0.2; share <= 1; share += 0.05)
    EXPECT_LE(best, 1.02 * Error(GridFor(-6 * share, 40 * share))) << share;
}

TEST_F(RangeMethodTest, EntropyClipsOutliersAsWell) {
  EXPECT_LT(histogram_.Grid(RangeMethod::kEntropy, 0).scale, GridFor(-6, 40).scale);
}

Layer MatrixLayer(int64_t terms, int64_t columns, const std::vector<double>& values) {
  Layer layer;
  layer.name = "m";
  layer.op = "MatMul";
  layer.weights_data = MakeConstant(ir::DType::kF32, {terms, columns}, values);
  layer.columns = columns;
  layer.terms = layer.channels = terms;
  return layer;
}

TEST(NarrowWeightsTest, EachColumnHasTheScaleOfItsLargest) {
  const Layer layer = MatrixLayer(2, 3, {1, -2, 0, -4, 0.5, 0});
  const NarrowWeights narrow = Narrow(layer, Scheme::kInt8, {}, 1);
  EXPECT_THAT(narrow.scales, ::testing::ElementsAre(4.0F / 127, 2.0F / 127, 1.0F));
  EXPECT_THAT(narrow.bytes, ::testing::ElementsAre(32, -127, 0, -127, 32, 0));
  for (size_t i = 0; i < 6; ++i)
    EXPECT_NEAR(narrow.restored[i], layer.weights_data->DoubleAt(static_cast<int64_t>(i)), 0.016);
}

TEST(NarrowWeightsTest, FourBitsReachTheNumberOfLargestSizeOfEitherSign) {
  for (const double sign : {1.0, -1.0}) {
    std::vector<double> values;
    for (int i = 0; i < 32; ++i) values.push_back(sign * (i % 16 - 8));
    const NarrowWeights narrow = Narrow(MatrixLayer(32, 1, values), Scheme::kInt4Weights, {}, 32);
    EXPECT_EQ(narrow.scales.size(), 1U);
    for (size_t i = 0; i < 32; ++i)
      EXPECT_NEAR(narrow.restored[i], values[i], 1e-5) << "16 levels hold 16 values";
  }
}

TEST(NarrowWeightsTest, SmoothingMovesBetweenDataAndWeights) {
  const Layer layer = MatrixLayer(2, 1, {1, 1});
  const NarrowWeights narrow = Narrow(layer, Scheme::kInt8, {10, 0.5}, 1);
  EXPECT_NEAR(narrow.restored[0], 10, 0.05);
  EXPECT_NEAR(narrow.restored[1], 0.5, 0.05);
}

TEST(NarrowWeightsTest, MeanShiftIsWhatTheMeanLoses) {
  const Layer layer = MatrixLayer(2, 1, {1, 0.3});
  const NarrowWeights narrow = Narrow(layer, Scheme::kInt8, {}, 1);
  const std::vector<double> shift = MeanShift(layer, narrow, {}, {2, 100});
  const double exact = 1 * 2 + 0.3 * 100;
  const double got =
      static_cast<double>(narrow.restored[0]) * 2 + static_cast<double>(narrow.restored[1]) * 100;
  EXPECT_NEAR(got + shift[0], exact, 1e-5);
}

TEST(NarrowWeightsTest, GroupsOfAConvolutionMeetTheirOwnChannels) {
  Layer layer;
  layer.op = "Conv";
  layer.weights_data = MakeConstant(ir::DType::kF32, {4, 2, 3}, std::vector<double>(24, 1));
  layer.by_rows = true;
  layer.columns = 4;
  layer.terms = 6;
  layer.window = 3;
  layer.channels = 4;  // in two groups
  EXPECT_EQ(layer.ChannelOf(0, 0), 0U);
  EXPECT_EQ(layer.ChannelOf(1, 5), 1U);
  EXPECT_EQ(layer.ChannelOf(2, 0), 2U);
  EXPECT_EQ(layer.ChannelOf(3, 5), 3U);
}

TEST(NarrowWeightsTest, SumsThatLeave32BitsStayInF32) {
  const Layer layer = MatrixLayer(70'000, 1, std::vector<double>(70'000, 1));
  EXPECT_THAT(WhyNotNarrow(layer, Scheme::kInt8, 1), HasSubstr("may overflow 32 bits"));
  EXPECT_EQ(WhyNotNarrow(layer, Scheme::kInt8Weights, 1), "");
  EXPECT_THAT(WhyNotNarrow(layer, Scheme::kInt4Weights, 64), HasSubstr("do not divide"));
  EXPECT_THAT(WhyNotNarrow(MatrixLayer(1, 1, {1e6}), Scheme::kF16, 1), HasSubstr("outside"));
}

TEST(SmoothingTest, DividesAnOutlierOutAndKeepsEvenDataEven) {
  constexpr int64_t kTerms = 32, kColumns = 8;
  Random random(3);
  std::vector<double> weights;
  for (int64_t i = 0; i < kTerms * kColumns; ++i) weights.push_back(random.Uniform() - 0.5);
  SourceModel source;
  source.layers.push_back(MatrixLayer(kTerms, kColumns, weights));
  const InputGroup group = {"x", {0}, kTerms, {kTerms}};
  for (const float outlier : {1.0F, 100.0F}) {
    DataStatistics statistics(group);
    std::vector<float> data;
    for (int64_t i = 0; i < 64 * kTerms; ++i) {
      const auto value = static_cast<float>(2 * random.Uniform() - 1);
      data.push_back(i % kTerms == 7 ? outlier * value : value);
    }
    statistics.Add(data, 1);
    const std::vector<float> smooth = ChooseSmoothing(source, group, statistics, Scheme::kInt8);
    if (outlier == 1) {
      // The weights' own sizes may still be worth something.
      for (const float factor : smooth) EXPECT_LT(std::max(factor, 1 / factor), 3) << factor;
    } else {
      ASSERT_FALSE(smooth.empty());
      EXPECT_GT(smooth[7], 5 * smooth[6]);
    }
  }
}

TEST(SourceModelTest, SaysWhyAModelOrALayerIsNotTaken) {
  const std::string path = ::testing::TempDir() + "/hone_source_model_test.onnx";
  OnnxModel old(11);
  old.Input("x", {"2", "4"}).Zeros("w", {4, 4}).Output("y");
  old.Node("MatMul", {"x", "w"}, {"y"});
  ASSERT_TRUE(WriteFileAtomically(path, old.Bytes()).ok());
  EXPECT_THAT(ReadSourceModel(path).status().message(), HasSubstr("is of operator set 11"));
  OnnxModel model(17);
  model.Input("x", {"2", "4"}).Zeros("w", {4, 4}).Output("z");
  model.Node("MatMul", {"x", "w"}, {"y"}).set_name("known");
  model.Node("MatMul", {"y", "y"}, {"z"}).set_name("computed");
  ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
  const auto source = ReadSourceModel(path);
  ASSERT_TRUE(source.ok()) << source.status();
  ASSERT_EQ(source->layers.size(), 1U);
  EXPECT_EQ(source->layers[0].name, "known");
  ASSERT_EQ(source->left_out.size(), 1U);
  EXPECT_EQ(source->left_out[0].why, "its weights are computed");
  const float nan = std::nanf("");
  model.graph().mutable_initializer(0)->mutable_raw_data()->replace(
      4, 4, reinterpret_cast<const char*>(&nan), 4);
  ASSERT_TRUE(WriteFileAtomically(path, model.Bytes()).ok());
  EXPECT_THAT(ReadSourceModel(path).status().message(),
              HasSubstr("MatMul known: element 1 of its weights 'w' is nan"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace hone::graph::onnx_quantise
