#pragma once

#include <cstdint>
#include <vector>

// Which of two things is faster, from samples that were taken in turns.
namespace hone::search {

/// Median and interval of the ratio a / b; sample i of both was taken in round i.
struct PairedRatio {
  double median = 1, low = 1, high = 1;
};
PairedRatio RatioOf(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

/// Whether `b` surely takes longer: 99 of 100 times the median ratio a / b is below 0.99 (order
/// statistics; for where many are judged at once).
bool Loses(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

/// Whether the model with fewer changes may stand in for the one with more: of `ratio` = more /
/// fewer the upper end is not below 0.998.
bool StandsIn(const PairedRatio& ratio);

/// Whether more rounds may tell which is faster: the interval holds 1, and there were fewer than
/// four times the first ones.
bool Undecided(const PairedRatio& ratio, int64_t rounds, int64_t first_rounds);

}  // namespace hone::search
