#include "graph/onnx_quantise/smoothing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/onnx_quantise/byte_grid.h"
#include "graph/onnx_quantise/narrow_weights.h"

namespace hone::graph::onnx_quantise {
namespace {

constexpr double kStrengths[] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
constexpr int64_t kColumnsTried = 48;
constexpr double kWorthwhile = 0.9;  ///< of the error without it
constexpr double kLeastSize = 1e-6;

/// Some columns of a layer, spread over all of them.
Layer Sampled(const Layer& layer) {
  Layer some = layer;
  some.by_rows = true;
  some.columns = std::min(layer.columns, kColumnsTried);
  const auto* from = reinterpret_cast<const float*>(layer.weights_data->bytes.data());
  std::vector<std::byte> bytes(static_cast<size_t>(some.columns * layer.terms) * sizeof(float));
  auto* to = reinterpret_cast<float*>(bytes.data());
  for (int64_t n = 0; n < some.columns; ++n)
    for (int64_t t = 0; t < layer.terms; ++t)
      to[n * layer.terms + t] = from[layer.ElementOf(n * layer.columns / some.columns, t)];
  some.weights_data =
      MakeConstant({ir::DType::kF32, {some.columns, layer.terms}}, std::move(bytes));
  return some;
}

/// The largest weight that each channel of a group meets.
std::vector<double> LargestWeights(const SourceModel& source, const InputGroup& group) {
  std::vector<double> largest(static_cast<size_t>(group.channels));
  for (const size_t i : group.layers) {
    const Layer& layer = source.layers[i];
    const auto* w = reinterpret_cast<const float*>(layer.weights_data->bytes.data());
    for (int64_t n = 0; n < layer.columns; ++n) {
      for (int64_t t = 0; t < layer.terms; ++t) {
        double& most = largest[layer.ChannelOf(n, t)];
        most = std::max(most, static_cast<double>(std::fabs(w[layer.ElementOf(n, t)])));
      }
    }
  }
  return largest;
}

/// max|x|^strength / max|w|^(1-strength); one where either is nothing.
std::vector<float> FactorsOf(const std::vector<double>& data, const std::vector<double>& weights,
                             double strength) {
  std::vector<float> factors;
  for (size_t c = 0; c < data.size(); ++c) {
    const bool empty = data[c] < kLeastSize || weights[c] < kLeastSize;
    const double factor =
        empty ? 1 : std::pow(data[c], strength) / std::pow(weights[c], 1 - strength);
    factors.push_back(static_cast<float>(std::clamp(factor, 1e-4, 1e4)));
  }
  return factors;
}

class SmoothingTrial {
 public:
  SmoothingTrial(const SourceModel& source, const InputGroup& group,
                 const DataStatistics& statistics)
      : statistics_(statistics),
        data_(statistics.Largest()),
        weights_(LargestWeights(source, group)) {
    for (const size_t i : group.layers) layers_.push_back(Sampled(source.layers[i]));
  }

  std::vector<float> Factors(double strength) const { return FactorsOf(data_, weights_, strength); }

  /// Sum of squared errors of the sampled sums, each layer's by the size of its own sums.
  double Error(const std::vector<float>& smooth) const {
    const ByteGrid grid = GridFor(statistics_.Low(smooth), statistics_.High(smooth));
    const std::vector<float>& rows = statistics_.rows();
    std::vector<float> rounded(rows.size());
    const size_t channels = data_.size();
    for (size_t i = 0; i < rows.size(); ++i)
      rounded[i] = grid.Restored(smooth.empty() ? rows[i] : rows[i] / smooth[i % channels]);
    double error = 0;
    for (const Layer& layer : layers_) error += ErrorOf(layer, smooth, rounded);
    return error;
  }

 private:
  double ErrorOf(const Layer& layer, const std::vector<float>& smooth,
                 const std::vector<float>& rounded) const {
    const NarrowWeights narrow = Narrow(layer, Scheme::kInt8, smooth, 1);
    const auto* w = reinterpret_cast<const float*>(layer.weights_data->bytes.data());
    const auto terms = static_cast<size_t>(layer.terms);
    const std::vector<float>& rows = statistics_.rows();
    double noise = 0, signal = 0;
    for (size_t row = 0; row + terms <= rows.size(); row += terms) {
      for (size_t n = 0; n < static_cast<size_t>(layer.columns); ++n) {
        float exact = 0, got = 0;
        for (size_t t = 0; t < terms; ++t) {
          exact += rows[row + t] * w[n * terms + t];
          got += rounded[row + t] * narrow.restored[n * terms + t];
        }
        const double difference = static_cast<double>(got) - static_cast<double>(exact);
        noise += difference * difference;
        signal += static_cast<double>(exact) * static_cast<double>(exact);
      }
    }
    return signal > 0 ? noise / signal : 0;
  }

  const DataStatistics& statistics_;
  std::vector<Layer> layers_;
  std::vector<double> data_, weights_;  ///< the largest size of each channel
};

}  // namespace

std::vector<float> ChooseSmoothing(const SourceModel& source, const InputGroup& group,
                                   const DataStatistics& statistics, Scheme scheme) {
  // What few rows show of a channel's size would clip all others.
  constexpr size_t kLeastRows = 16;
  const size_t rows = statistics.rows().size() / static_cast<size_t>(group.channels);
  if (!IsIntegerProduct(scheme) || rows < kLeastRows) return {};
  const SmoothingTrial trial(source, group, statistics);
  double least = trial.Error({}) * kWorthwhile;
  std::vector<float> best;
  for (const double strength : kStrengths) {
    std::vector<float> factors = trial.Factors(strength);
    const double error = trial.Error(factors);
    if (error >= least) continue;
    least = error;
    best = std::move(factors);
  }
  return best;
}

std::vector<float> EqualisingFactors(const SourceModel& source, const InputGroup& group,
                                     const DataStatistics& statistics) {
  constexpr double kHalf = 0.5, kAlike = 1.5;
  std::vector<float> factors =
      FactorsOf(statistics.Largest(), LargestWeights(source, group), kHalf);
  const auto [least, most] = std::ranges::minmax(factors);
  if (most < kAlike * least) factors.clear();
  return factors;
}

}  // namespace hone::graph::onnx_quantise
