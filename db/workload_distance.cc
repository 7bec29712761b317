#include "db/workload_distance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace hone::db {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

WorkloadForm FormOf(std::string_view workload_text) {
  WorkloadForm form;
  for (size_t at = 0; at < workload_text.size();) {
    if (!IsDigit(workload_text[at])) {
      form.skeleton.push_back(workload_text[at++]);
      continue;
    }
    // Longer runs are digits of a float; they take part with as much as fits.
    constexpr int64_t kMost = int64_t{1} << 52;
    int64_t value = 0;
    for (; at < workload_text.size() && IsDigit(workload_text[at]); ++at) {
      value = std::min(value * 10 + (workload_text[at] - '0'), kMost);
    }
    form.skeleton.push_back('#');
    // Zero is an integer too: an index, a padding.
    form.logs.push_back(std::log2(std::max(static_cast<double>(value), 0.5)));
  }
  return form;
}

std::optional<double> WorkloadDistance(const WorkloadForm& a, const WorkloadForm& b) {
  if (a.skeleton != b.skeleton) return std::nullopt;
  double distance = 0;
  for (size_t i = 0; i < a.logs.size(); ++i) distance += std::abs(a.logs[i] - b.logs[i]);
  return distance;
}

}  // namespace hone::db
