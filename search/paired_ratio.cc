#include "search/paired_ratio.h"

#include <algorithm>
#include <utility>

#include "search/median_interval.h"

namespace hone::search {

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

bool Undecided(const PairedRatio& ratio, int64_t rounds, int64_t first_rounds) {
  constexpr int64_t kMostTimes = 4;
  return ratio.low <= 1 && ratio.high >= 1 && rounds < kMostTimes * first_rounds;
}

}  // namespace hone::search
