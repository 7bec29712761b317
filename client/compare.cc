#include "client/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "fmt/ranges.h"

#include "base/core/check.h"

namespace hone::client {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void Note(int64_t element, double value, double expected, double share, Comparison& result) {
  if (share > 1) ++result.differing;
  if (share <= result.worst_share && result.worst >= 0) return;
  if (share == 0) return;
  result.worst_share = share;
  result.worst = element;
  result.worst_value = value;
  result.worst_expected = expected;
}

}  // namespace

Tolerance DefaultTolerance(ir::DType dtype) {
  constexpr double kF16Step = 0x1p-10, kBF16Step = 0x1p-7;
  switch (dtype) {
    case ir::DType::kF16: return {2 * kF16Step, 4 * kF16Step};
    case ir::DType::kBF16: return {2 * kBF16Step, 4 * kBF16Step};
    case ir::DType::kI8:
    case ir::DType::kU8: return {0, 0, 1};
    default: return {};
  }
}

Comparison CompareTensors(const graph::TensorData& value, const graph::TensorData& expected,
                          const Tolerance& tolerance) {
  HONE_CHECK(value.type == expected.type);
  const ir::DType dtype = value.type.dtype;
  Comparison result;
  result.elements = value.type.NumElements();
  if (!ir::IsFloat(dtype) && ir::SizeOf(dtype) > 1) {
    const std::vector<int64_t> y = value.AsInt64s(), e = expected.AsInt64s();
    for (size_t i = 0; i < y.size(); ++i) {
      if (y[i] == e[i]) continue;
      const auto a = static_cast<double>(y[i]), b = static_cast<double>(e[i]);
      result.max_difference = std::max(result.max_difference, std::abs(a - b));
      Note(static_cast<int64_t>(i), a, b, kInfinity, result);
    }
    return result;
  }
  const std::vector<double> y = value.AsDoubles(), e = expected.AsDoubles();
  const bool may_differ = dtype != ir::DType::kBool;
  double largest = 0;
  for (const double each : e) {
    if (std::isfinite(each)) largest = std::max(largest, std::abs(each));
  }
  for (size_t i = 0; i < y.size(); ++i) {
    if (y[i] == e[i] || (std::isnan(y[i]) && std::isnan(e[i]))) continue;
    double share = kInfinity;
    if (may_differ && std::isfinite(y[i]) && std::isfinite(e[i])) {
      const double difference = std::abs(y[i] - e[i]);
      result.max_difference = std::max(result.max_difference, difference);
      share = difference / (tolerance.absolute * largest + tolerance.relative * std::abs(e[i]) +
                            tolerance.steps);
    }
    Note(static_cast<int64_t>(i), y[i], e[i], share, result);
  }
  return result;
}

std::string IndexText(int64_t element, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = element % shape[d];
    element /= shape[d];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace hone::client
