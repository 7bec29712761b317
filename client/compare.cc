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

Comparison CompareTensors(const graph::TensorData& value, const graph::TensorData& expected,
                          const Tolerance& tolerance) {
  HONE_CHECK(value.type == expected.type);
  Comparison result;
  result.elements = value.type.NumElements();
  if (!ir::IsFloat(value.type.dtype)) {
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
  double largest = 0;
  for (const double each : e) {
    if (std::isfinite(each)) largest = std::max(largest, std::abs(each));
  }
  for (size_t i = 0; i < y.size(); ++i) {
    if (y[i] == e[i] || (std::isnan(y[i]) && std::isnan(e[i]))) continue;
    double share = kInfinity;
    if (std::isfinite(y[i]) && std::isfinite(e[i])) {
      const double difference = std::abs(y[i] - e[i]);
      result.max_difference = std::max(result.max_difference, difference);
      share = difference / (tolerance.absolute * largest + tolerance.relative * std::abs(e[i]));
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
