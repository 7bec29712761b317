#include "search/paired_ratio.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "search/median_interval.h"

namespace hone::search {
namespace {

/// The median ratio a / b is below this with a probability of 99 % (one side; normal approximation
/// of the binomial).
double UpperRatio(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  constexpr double kReach = 0.5 * 2.33;
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    ratios.push_back(static_cast<double>(a[i]) / static_cast<double>(std::max<int64_t>(b[i], 1)));
  if (ratios.empty()) return std::numeric_limits<double>::infinity();
  std::sort(ratios.begin(), ratios.end());
  const auto n = static_cast<double>(ratios.size());
  const double place = std::ceil(n / 2 + kReach * std::sqrt(n));
  return ratios[static_cast<size_t>(std::min(place, n - 1))];
}

}  // namespace

PairedRatio RatioOf(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  constexpr double kScale = 1e6;
  std::vector<int64_t> ratios;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const auto below = static_cast<double>(std::max<int64_t>(b[i], 1));
    ratios.push_back(static_cast<int64_t>(kScale * static_cast<double>(a[i]) / below));
  }
  if (ratios.empty()) return {};
  const MedianInterval m = IntervalOf(std::move(ratios));
  return {m.median / kScale, m.low / kScale, m.high / kScale};
}

bool Loses(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  constexpr double kLoses = 0.99;
  return UpperRatio(a, b) < kLoses;
}

bool StandsIn(const PairedRatio& ratio) {
  constexpr double kNotSlower = 0.998;
  return ratio.high >= kNotSlower;
}

bool Undecided(const PairedRatio& ratio, int64_t rounds, int64_t first_rounds) {
  constexpr int64_t kMostTimes = 4;
  return ratio.low <= 1 && ratio.high >= 1 && rounds < kMostTimes * first_rounds;
}

}  // namespace hone::search
