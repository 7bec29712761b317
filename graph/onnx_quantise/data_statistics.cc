#include "graph/onnx_quantise/data_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone::graph::onnx_quantise {
namespace {

constexpr size_t kRowsOfRun = 16;
constexpr size_t kMostRows = 64;

float Of(const std::vector<float>& smooth, size_t channel) {
  return smooth.empty() ? 1 : smooth[channel];
}

}  // namespace

DataStatistics::DataStatistics(const InputGroup& group)
    : channels_(static_cast<size_t>(group.channels)),
      last_(group.spread.size() == 1),
      low_(channels_, std::numeric_limits<float>::infinity()),
      high_(channels_, -std::numeric_limits<float>::infinity()),
      sum_(channels_),
      squares_(channels_),
      count_(channels_) {}

void DataStatistics::Add(std::span<const float> data, size_t inner) {
  for (size_t first = 0; first + inner <= data.size(); first += inner) {
    const size_t c = first / inner % channels_;
    float low = low_[c], high = high_[c];
    double sum = 0, squares = 0;
    for (const float value : data.subspan(first, inner)) {
      low = std::min(low, value);
      high = std::max(high, value);
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
    low_[c] = low;
    high_[c] = high;
    sum_[c] += sum;
    squares_[c] += squares;
    count_[c] += static_cast<int64_t>(inner);
  }
  const size_t rows = data.size() / channels_;
  if (!last_ || rows == 0) return;
  const size_t step = std::max<size_t>(rows / kRowsOfRun, 1);
  for (size_t row = 0; row < rows && rows_.size() < kMostRows * channels_; row += step) {
    const auto from = data.subspan(row * channels_, channels_);
    rows_.insert(rows_.end(), from.begin(), from.end());
  }
}

double DataStatistics::Low(const std::vector<float>& smooth) const {
  double low = 0;
  for (size_t c = 0; c < channels_; ++c)
    low = std::min(low, static_cast<double>(low_[c]) / static_cast<double>(Of(smooth, c)));
  return low;
}

double DataStatistics::High(const std::vector<float>& smooth) const {
  double high = 0;
  for (size_t c = 0; c < channels_; ++c)
    high = std::max(high, static_cast<double>(high_[c]) / static_cast<double>(Of(smooth, c)));
  return high;
}

std::vector<double> DataStatistics::Largest() const {
  std::vector<double> largest;
  for (size_t c = 0; c < channels_; ++c)
    largest.push_back(count_[c] == 0 ? 0 : std::max(std::fabs(low_[c]), std::fabs(high_[c])));
  return largest;
}

std::vector<double> DataStatistics::Means() const {
  std::vector<double> means;
  for (size_t c = 0; c < channels_; ++c)
    means.push_back(count_[c] == 0 ? 0 : sum_[c] / static_cast<double>(count_[c]));
  return means;
}

std::vector<double> DataStatistics::Norms() const {
  std::vector<double> norms;
  for (const double squares : squares_) norms.push_back(std::sqrt(squares));
  return norms;
}

}  // namespace hone::graph::onnx_quantise
