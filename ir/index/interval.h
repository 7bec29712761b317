#pragma once

#include <cstdint>

#include "ir/dtype.h"

namespace hone::ir {

/// The integers low..high, both included. Bounds saturate at ±2^62, which stands for "no bound".
struct Interval {
  static constexpr int64_t kInfinite = int64_t{1} << 62;
  int64_t low = -kInfinite;
  int64_t high = kInfinite;

  bool IsPoint() const { return low == high; }
  bool IsBounded() const { return low > -kInfinite && high < kInfinite; }
  bool Contains(const Interval& other) const { return low <= other.low && other.high <= high; }
  bool operator==(const Interval&) const = default;
};

constexpr bool IsInfinite(int64_t bound) {
  return bound <= -Interval::kInfinite || bound >= Interval::kInfinite;
}
int64_t Saturated(__int128 value);

/// Sums and products of values of each.
Interval operator+(const Interval& a, const Interval& b);
Interval operator*(const Interval& a, const Interval& b);
/// What lies in both; may be empty (low > high).
Interval Intersection(const Interval& a, const Interval& b);
/// The least interval with both.
Interval Hull(const Interval& a, const Interval& b);
/// All values of an integer dtype (or bool).
Interval IntervalOf(DType dtype);

/// Floor division and remainder by a positive constant.
constexpr int64_t FloorDivInt(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
constexpr int64_t FloorModInt(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

}  // namespace hone::ir
