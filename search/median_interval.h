#pragma once

#include <cstdint>
#include <vector>

namespace hone::search {

/// Median and an interval of it (distribution-free, about 95 %: order statistics of the binomial;
/// Conover, "Practical Nonparametric Statistics", §3.2). One sample: the interval is that sample.
struct MedianInterval {
  double median = 0, low = 0, high = 0;
};
MedianInterval IntervalOf(std::vector<int64_t> samples_ns);

}  // namespace hone::search
