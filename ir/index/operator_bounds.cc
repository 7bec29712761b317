#include "ir/index/operator_bounds.h"

#include <algorithm>
#include <array>

#include "ir/integer.h"

namespace hone::ir {
namespace {

int64_t FloorDivideBound(int64_t a, int64_t b) {
  return IsInfinite(a) ? a : FloorDivide(DType::kI64, a, b);
}

/// a // b for b >= 1.
Interval Quotient(const Interval& a, const Interval& b) {
  const std::array<int64_t, 4> corners = {
      FloorDivideBound(a.low, b.low), FloorDivideBound(a.low, b.high),
      FloorDivideBound(a.high, b.low), FloorDivideBound(a.high, b.high)};
  return {*std::ranges::min_element(corners), *std::ranges::max_element(corners)};
}

/// a % b for b >= 1.
Interval Remainder(const Interval& a, const Interval& b) {
  if (b.low == b.high && a.IsBounded()) {
    const int64_t period = FloorDivide(DType::kI64, a.low, b.low);
    if (period == FloorDivide(DType::kI64, a.high, b.low)) {
      return {a.low - period * b.low, a.high - period * b.low};
    }
  }
  const Interval all = {0, b.high - 1};
  return a.low >= 0 ? Intersection(all, {0, a.high}) : all;
}

}  // namespace

Interval BoundsOfBinary(BinaryOp op, const Interval& a, const Interval& b) {
  const bool positive = b.low >= 1;
  switch (op) {
    case BinaryOp::kAdd: return a + b;
    case BinaryOp::kSub: return a + b * Interval{-1, -1};
    case BinaryOp::kMul: return a * b;
    case BinaryOp::kMin: return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case BinaryOp::kMax: return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case BinaryOp::kDiv:
      if (positive) return Quotient(a, b);
      break;
    case BinaryOp::kMod:
      if (positive) return Remainder(a, b);
      break;
    case BinaryOp::kTruncDiv:
      if (positive && a.low >= 0) return Quotient(a, b);
      break;
    case BinaryOp::kTruncMod:
      if (positive && a.low >= 0) return Remainder(a, b);
      break;
    case BinaryOp::kAnd:
      if (a.low >= 0 && b.low >= 0) return {0, std::min(a.high, b.high)};
      break;
    case BinaryOp::kShr:
      if (b.low == b.high && b.low >= 0 && b.low < 62 && a.low >= 0) {
        return Quotient(a, {int64_t{1} << b.low, int64_t{1} << b.low});
      }
      break;
    default: break;
  }
  return {};
}

std::optional<bool> HoldsThroughout(BinaryOp op, const Interval& d) {
  const auto known = [](bool always, bool never) -> std::optional<bool> {
    if (always) return true;
    if (never) return false;
    return std::nullopt;
  };
  switch (op) {
    case BinaryOp::kLt: return known(d.high < 0, d.low >= 0);
    case BinaryOp::kLe: return known(d.high <= 0, d.low > 0);
    case BinaryOp::kGt: return known(d.low > 0, d.high <= 0);
    case BinaryOp::kGe: return known(d.low >= 0, d.high < 0);
    case BinaryOp::kEq: return known(d.low == 0 && d.high == 0, d.low > 0 || d.high < 0);
    case BinaryOp::kNe: return known(d.low > 0 || d.high < 0, d.low == 0 && d.high == 0);
    default: return std::nullopt;
  }
}

}  // namespace hone::ir
