#include "client/sample_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  return {.median = Quantile(samples, 0.5),
          .min = samples.front(),
          .p10 = Quantile(samples, 0.1),
          .p90 = Quantile(samples, 0.9),
          .p99 = Quantile(samples, 0.99),
          .p999 = Quantile(samples, 0.999),
          .mean = sum / static_cast<double>(samples.size())};
}

}  // namespace hone::client
