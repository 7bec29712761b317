#include "graph/onnx_quantise/byte_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/status.h"

namespace hone::graph::onnx_quantise {
namespace {

constexpr double kLevels = 255;
constexpr size_t kSteps = 4096;
/// Ranges tried by the methods that search: shares of what was seen, from all of it downwards.
constexpr int kShares = 80;
constexpr double kLeastShare = 0.2;

constexpr std::array<std::pair<RangeMethod, std::string_view>, 4> kMethods = {{
    {RangeMethod::kMinMax, "minmax"},
    {RangeMethod::kPercentile, "percentile"},
    {RangeMethod::kMse, "mse"},
    {RangeMethod::kEntropy, "entropy"},
}};

}  // namespace

float ByteGrid::Restored(float x) const {
  const float number = std::nearbyint(x / scale) + static_cast<float>(zero);
  const float saturated = std::min(std::max(number, 0.0F), static_cast<float>(kLevels));
  return (saturated - static_cast<float>(zero)) * scale;
}

ByteGrid GridFor(double low, double high) {
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  const auto scale = static_cast<float>((high - low) / kLevels);
  // A scale that f32 holds badly would divide by nothing.
  if (!(scale >= 1e-30F)) return {};
  const double zero = std::nearbyint(-low / static_cast<double>(scale));
  return {scale, static_cast<uint8_t>(std::clamp(zero, 0.0, kLevels))};
}

std::optional<RangeMethod> ParseRangeMethod(std::string_view text) {
  for (const auto& [method, name] : kMethods) {
    if (name == text) return method;
  }
  return std::nullopt;
}

std::string_view ToText(RangeMethod method) {
  for (const auto& [each, name] : kMethods) {
    if (each == method) return name;
  }
  HONE_UNREACHABLE();
}

RangeHistogram::RangeHistogram(double low, double high) : low_(low), high_(high), steps_(kSteps) {
  HONE_CHECK(low < high && std::isfinite(low) && std::isfinite(high));
}

void RangeHistogram::Add(float value) {
  const double at = (static_cast<double>(value) - low_) / (high_ - low_) * kSteps;
  ++steps_[static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(kSteps - 1)))];
  ++count_;
}

double RangeHistogram::Centre(size_t step) const {
  return low_ + (static_cast<double>(step) + 0.5) * (high_ - low_) / kSteps;
}

double RangeHistogram::SquaredError(const ByteGrid& grid) const {
  const double width = (high_ - low_) / kSteps;
  const double scale = static_cast<double>(grid.scale);
  double sum = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    if (steps_[i] == 0) continue;
    const double x = Centre(i);
    const double lowest = -static_cast<double>(grid.zero) * scale;
    const double highest = lowest + kLevels * scale;
    const double beyond = std::max({lowest - x, x - highest, 0.0});
    // Within the range values lie anywhere between two numbers, also where a step is narrower.
    const double error = beyond > 0 ? beyond * beyond + width * width / 12 : scale * scale / 12;
    sum += static_cast<double>(steps_[i]) * error;
  }
  return sum;
}

// The histogram as the grid gives it back: what falls on one number is spread over the steps with
// values that fall there; what is clipped counts where it is clipped to.
double RangeHistogram::Divergence(const ByteGrid& grid) const {
  struct Cell {
    double count = 0, reference = 0;
    int64_t steps = 0;
  };
  std::array<Cell, 256> cells;
  std::vector<double> reference(kSteps);
  std::vector<uint8_t> cell_of(kSteps);
  const double lowest = -static_cast<double>(grid.zero) * static_cast<double>(grid.scale);
  const double highest = lowest + kLevels * static_cast<double>(grid.scale);
  const auto step_at = [&](double x) {
    const double at = (x - low_) / (high_ - low_) * kSteps;
    return static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(kSteps - 1)));
  };
  const size_t first = step_at(lowest), last = step_at(highest);
  for (size_t i = 0; i < kSteps; ++i) {
    const size_t inside = std::clamp(i, first, last);
    reference[inside] += static_cast<double>(steps_[i]);
    const double number = std::nearbyint(Centre(i) / static_cast<double>(grid.scale)) + grid.zero;
    cell_of[i] = static_cast<uint8_t>(std::clamp(number, 0.0, kLevels));
    if (i < first || i > last || steps_[i] == 0) continue;
    cells[cell_of[i]].count += static_cast<double>(steps_[i]);
    ++cells[cell_of[i]].steps;
  }
  double kept = 0;
  for (const Cell& cell : cells) kept += cell.count;
  if (kept == 0) return HUGE_VAL;
  double divergence = 0;
  for (size_t i = first; i <= last; ++i) {
    if (reference[i] == 0) continue;
    const Cell& cell = cells[cell_of[i]];
    const double share = cell.steps == 0 ? 1e-9 : cell.count / static_cast<double>(cell.steps);
    const double p = reference[i] / static_cast<double>(count_);
    const double q = steps_[i] == 0 ? 1e-9 : share / kept;
    divergence += p * std::log(p / q);
  }
  return divergence;
}

ByteGrid RangeHistogram::PercentileGrid(double percentile) const {
  const auto left_out =
      static_cast<int64_t>(static_cast<double>(count_) * (100 - percentile) / 100);
  size_t first = 0, last = kSteps - 1;
  for (int64_t seen = steps_[first]; seen <= left_out && first < last; seen += steps_[first])
    ++first;
  for (int64_t seen = steps_[last]; seen <= left_out && last > first; seen += steps_[last]) --last;
  const double width = (high_ - low_) / kSteps;
  return GridFor(first == 0 ? low_ : Centre(first) - width / 2,
                 last == kSteps - 1 ? high_ : Centre(last) + width / 2);
}

ByteGrid RangeHistogram::Grid(RangeMethod method, double percentile) const {
  const ByteGrid all = GridFor(low_, high_);
  if (count_ == 0 || method == RangeMethod::kMinMax) return all;
  if (method == RangeMethod::kPercentile) return PercentileGrid(percentile);
  ByteGrid best = all;
  double least = HUGE_VAL;
  for (int i = 0; i < kShares; ++i) {
    const double share = 1 - (1 - kLeastShare) * i / (kShares - 1);
    const ByteGrid grid = GridFor(low_ * share, high_ * share);
    const double error = method == RangeMethod::kMse ? SquaredError(grid) : Divergence(grid);
    if (error < least) {
      least = error;
      best = grid;
    }
  }
  return best;
}

}  // namespace hone::graph::onnx_quantise
