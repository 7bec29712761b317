#pragma once

#include <cstdint>
#include <vector>

// Whether one of two is faster, by samples that were taken in turns.
namespace hone::search {

/// Median and interval of the ratio a / b; sample i of both was taken in round i.
struct PairedRatio {
  double median = 1, low = 1, high = 1;
};
PairedRatio RatioOf(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

/// Whether more rounds may tell which is faster: the interval holds 1, and there were fewer than
/// four times the first ones.
bool Undecided(const PairedRatio& ratio, int64_t rounds, int64_t first_rounds);

}  // namespace hone::search
