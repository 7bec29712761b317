#include "client/sample_statistics.h"

#include <algorithm>
#include <cmath>

#include "base/core/check.h"

namespace hone::client {
namespace {

double Quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

}  // namespace

SampleStatistics Summarise(std::vector<double> samples) {
  HONE_CHECK(!samples.empty());
  std::sort(samples.begin(), samples.end());
  return {Quantile(samples, 0.5), samples.front(), Quantile(samples, 0.1), Quantile(samples, 0.9)};
}

}  // namespace hone::client
