#include "ir/index/interval.h"

#include <algorithm>
#include <array>

#include "ir/integer.h"

namespace hone::ir {
namespace {

using Wide = __int128;

int64_t SaturatedSum(int64_t a, int64_t b) {
  if (IsInfinite(a)) return a;
  if (IsInfinite(b)) return b;
  return Saturated(Wide{a} + b);
}

}  // namespace

int64_t Saturated(__int128 value) {
  return static_cast<int64_t>(
      std::clamp<Wide>(value, -Wide{Interval::kInfinite}, Wide{Interval::kInfinite}));
}

Interval operator+(const Interval& a, const Interval& b) {
  return {SaturatedSum(a.low, b.low), SaturatedSum(a.high, b.high)};
}

Interval operator*(const Interval& a, const Interval& b) {
  const std::array<Wide, 4> corners = {Wide{a.low} * b.low, Wide{a.low} * b.high,
                                       Wide{a.high} * b.low, Wide{a.high} * b.high};
  const auto [low, high] = std::ranges::minmax_element(corners);
  return {Saturated(*low), Saturated(*high)};
}

Interval Intersection(const Interval& a, const Interval& b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

Interval Hull(const Interval& a, const Interval& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Interval IntervalOf(DType dtype) {
  if (IsFloat(dtype) || SizeOf(dtype) == 8) {
    return {dtype == DType::kU64 ? 0 : -Interval::kInfinite, Interval::kInfinite};
  }
  return {MinOf(dtype), MaxOf(dtype)};
}

}  // namespace hone::ir
