// What the weights that are left make up for, against least squares solved column by column.

#include "graph/onnx_prune/weight_update.h"

#include <cmath>
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/core/random.h"
#include "graph/onnx_import/onnx.pb.h"

namespace hone::graph::onnx_prune {
namespace {

using onnx_quantise::Layer;

constexpr int64_t kTerms = 24, kColumns = 10, kRows = 400;

Layer MakeLayer(Random& random) {
  std::vector<double> values;
  for (int64_t i = 0; i < kTerms * kColumns; ++i) values.push_back(2 * random.Uniform() - 1);
  return {.name = "layer",
          .op = "MatMul",
          .weights_data = MakeConstant(ir::DType::kF32, {kTerms, kColumns}, values),
          .columns = kColumns,
          .terms = kTerms,
          .channels = kTerms};
}

/// Rows of 5 numbers that all channels are mixed of, and a little of their own.
std::vector<float> Correlated(Random& random) {
  std::vector<double> mix(5 * kTerms);
  for (double& each : mix) each = 2 * random.Uniform() - 1;
  std::vector<float> data;
  for (int64_t row = 0; row < kRows; ++row) {
    std::vector<double> few(5);
    for (double& each : few) each = 2 * random.Uniform() - 1;
    for (size_t t = 0; t < kTerms; ++t) {
      double sum = 0.1 * (2 * random.Uniform() - 1);
      for (size_t k = 0; k < few.size(); ++k) sum += few[k] * mix[k * kTerms + t];
      data.push_back(static_cast<float>(sum));
    }
  }
  return data;
}

/// The squared error of a column's sums on the data, and λ times that of the weights themselves.
double ErrorOf(const Layer& layer, const std::vector<float>& weights,
               const std::vector<float>& data, int64_t column, double damping) {
  const auto* own = reinterpret_cast<const float*>(layer.weights_data->bytes.data());
  double error = 0;
  for (size_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (size_t t = 0; t < kTerms; ++t) {
      const size_t at = layer.ElementOf(column, static_cast<int64_t>(t));
      sum += static_cast<double>(data[row * kTerms + t]) *
             (static_cast<double>(weights[at]) - static_cast<double>(own[at]));
    }
    error += sum * sum;
  }
  for (size_t t = 0; t < kTerms; ++t) {
    const size_t at = layer.ElementOf(column, static_cast<int64_t>(t));
    const double own_error = static_cast<double>(weights[at]) - static_cast<double>(own[at]);
    error += damping * own_error * own_error;
  }
  return error;
}

struct Problem {
  explicit Problem(uint64_t seed) : random(seed) {}
  Random random;
  Layer layer = MakeLayer(random);
  std::vector<float> data = Correlated(random);
  InputMoments moments{kTerms};
  double damping = 0;
  std::vector<float> weights = std::vector<float>(
      reinterpret_cast<const float*>(layer.weights_data->bytes.data()),
      reinterpret_cast<const float*>(layer.weights_data->bytes.data()) + kTerms * kColumns);

  void Observe() {
    moments.Add(data, 1);
    for (size_t t = 0; t < kTerms; ++t) damping += 0.01 * moments.At(t, t) / kTerms;
  }
};

TEST(WeightUpdateTest, WhereAllColumnsLoseTheSameTermsNoOthersAreBetter) {
  Problem p(11);
  p.Observe();
  for (size_t t = 0; t < kTerms; ++t)
    for (size_t n = 0; n < kColumns; ++n)
      if (t % 3 != 0) p.weights[t * kColumns + n] = 0;
  const std::vector<float> updated = UpdatedWeights(p.layer, p.weights, p.moments);
  for (int64_t n = 0; n < kColumns; ++n) {
    const double least = ErrorOf(p.layer, updated, p.data, n, p.damping);
    EXPECT_LT(least, 0.5 * ErrorOf(p.layer, p.weights, p.data, n, p.damping));
    for (int64_t t = 0; t < kTerms; ++t) {
      const size_t at = p.layer.ElementOf(n, t);
      if (p.weights[at] == 0) {
        EXPECT_EQ(updated[at], 0);
        continue;
      }
      // At the bottom of a parabola both sides are higher.
      for (const float step : {-0.01F, 0.01F}) {
        std::vector<float> other = updated;
        other[at] += step;
        EXPECT_GT(ErrorOf(p.layer, other, p.data, n, p.damping), least) << n << " " << t;
      }
    }
  }
}

TEST(WeightUpdateTest, WhereEachColumnLosesItsOwnTheErrorFalls) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    Problem p(seed);
    p.Observe();
    for (float& weight : p.weights)
      if (p.random.Uniform() < 0.6) weight = 0;
    const std::vector<float> updated = UpdatedWeights(p.layer, p.weights, p.moments);
    double before = 0, after = 0;
    for (int64_t n = 0; n < kColumns; ++n) {
      before += ErrorOf(p.layer, p.weights, p.data, n, 0);
      after += ErrorOf(p.layer, updated, p.data, n, 0);
    }
    EXPECT_LT(after, 0.7 * before);
    for (size_t i = 0; i < updated.size(); ++i) EXPECT_EQ(updated[i] == 0, p.weights[i] == 0);
  }
}

TEST(WeightUpdateTest, PlacesOfAnImageAreSeenAsRows) {
  InputMoments rows(2), image(2);
  rows.Add(std::vector<float>{1, 2, 3, 4, 5, 6}, 1);
  image.Add(std::vector<float>{1, 3, 5, 2, 4, 6}, 3);
  for (const auto& [a, b] : {std::pair(0, 0), {0, 1}, {1, 0}, {1, 1}})
    EXPECT_EQ(rows.At(a, b), image.At(a, b));
  EXPECT_EQ(rows.At(0, 1), 44);
}

TEST(WeightUpdateTest, ChannelsThatWereNeverSeenAreNoTrouble) {
  Problem p(5);
  for (size_t i = 0; i < p.data.size(); ++i)
    if (i % kTerms < 8) p.data[i] = 0;
  p.Observe();
  for (size_t i = 0; i < p.weights.size(); i += 2) p.weights[i] = 0;
  for (const float weight : UpdatedWeights(p.layer, p.weights, p.moments))
    EXPECT_TRUE(std::isfinite(weight));
  const std::vector<float> none =
      UpdatedWeights(p.layer, std::vector<float>(p.weights.size()), InputMoments(kTerms));
  EXPECT_EQ(none, std::vector<float>(p.weights.size()));
}

TEST(WeightUpdateTest, WindowsAreSeenAsTheConvolutionReadsThem) {
  // One channel of 3×4, windows of 2×2 with a stride of 2 across, a row of zeros above.
  InputMoments image(4), rows(4);
  const std::vector<float> data = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  image.AddWindows(
      data, {1, 1, 3, 4},
      {.kernel = {2, 2}, .strides = {1, 2}, .dilations = {1, 1}, .pads = {1, 0, 0, 0}});
  rows.Add(
      std::vector<float>{0, 0, 1, 2, 0, 0, 3, 4, 1, 2, 5, 6, 3, 4, 7, 8, 5, 6, 9, 10, 7, 8, 11, 12},
      1);
  for (size_t a = 0; a < 4; ++a)
    for (size_t b = 0; b < 4; ++b) EXPECT_EQ(image.At(a, b), rows.At(a, b)) << a << " " << b;
}

TEST(WeightUpdateTest, SaysWhichLayersItIsNotFor) {
  onnx_quantise::SourceModel source;
  auto proto = std::make_shared<onnx::ModelProto>();
  onnx::NodeProto& node = *proto->mutable_graph()->add_node();
  source.proto = proto;
  Random random(1);
  Layer layer = MakeLayer(random);
  EXPECT_EQ(WhyNotUpdated(source, layer, 48), "");
  EXPECT_EQ(WhyNotUpdated(source, layer, 47),
            "each channel was seen 47 times, fewer than 2 for each of its 24 terms");
  layer.terms = layer.channels = 2049;
  EXPECT_EQ(WhyNotUpdated(source, layer, 1 << 20), "its sums have 2049 terms, more than 2048");
  layer.op = "Conv";
  layer.weights_data = MakeConstant(ir::DType::kF32, {4, 2, 3, 3}, std::vector<double>(72));
  layer.terms = 18;
  layer.window = 9;
  layer.channels = 2;
  EXPECT_EQ(WhyNotUpdated(source, layer, 36), "");
  layer.channels = 4;  // in groups
  EXPECT_THAT(WhyNotUpdated(source, layer, 36), ::testing::HasSubstr("its sums are over groups"));
  layer.channels = 2;
  onnx::AttributeProto& pads = *node.add_attribute();
  pads.set_name("auto_pad");
  pads.set_s("SAME_UPPER");
  EXPECT_THAT(WhyNotUpdated(source, layer, 36), ::testing::HasSubstr("by known pads"));
}

}  // namespace
}  // namespace hone::graph::onnx_prune
