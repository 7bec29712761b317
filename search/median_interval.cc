#include "search/median_interval.h"

#include <algorithm>
#include <cmath>

namespace hone::search {

MedianInterval IntervalOf(std::vector<int64_t> samples) {
  MedianInterval out;
  if (samples.empty()) return out;
  std::sort(samples.begin(), samples.end());
  const auto n = static_cast<double>(samples.size());
  const size_t middle = samples.size() / 2;
  out.median = samples.size() % 2
                   ? static_cast<double>(samples[middle])
                   : 0.5 * static_cast<double>(samples[middle - 1] + samples[middle]);
  const double reach = 0.98 * std::sqrt(n);
  const auto low = static_cast<size_t>(std::max(0.0, std::floor(n / 2 - reach)));
  const auto high = static_cast<size_t>(std::min(n - 1, std::ceil(n / 2 + reach)));
  out.low = static_cast<double>(samples[low]);
  out.high = static_cast<double>(samples[high]);
  return out;
}

}  // namespace hone::search
