#pragma once

#include <vector>

namespace hone::client {

/// Order statistics of times, in the unit of the samples.
struct SampleStatistics {
  double median = 0;
  double min = 0;
  double p10 = 0;
  double p90 = 0;
  double p99 = 0;
  double p999 = 0;
  double mean = 0;
};

/// `samples` must not be empty. Quantiles interpolate between neighbours (Hyndman and Fan 1996,
/// type 7).
SampleStatistics Summarise(std::vector<double> samples);

}  // namespace hone::client
