#include "search/part_screening.h"

#include <algorithm>

namespace hone::search {
namespace {

constexpr size_t kLeastRatios = 3;
constexpr double kMostRatio = 10;

}  // namespace

void PartScreening::Add(int sketch, double part_ns, double whole_ns) {
  if (part_ns <= 0 || whole_ns <= 0) return;
  ++both_;
  latest_.push_back({sketch, part_ns, whole_ns});
  if (latest_.size() > kMostBoth) latest_.erase(latest_.begin());
  if (latest_.size() < kLeastBoth || part_ns_ == 0) return;
  const std::optional<double> correlation = RankCorrelation();
  if (!correlation || *correlation >= kLeastCorrelation) return;
  part_ns_ = 2 * part_ns_ > kMostPartNs ? 0 : 2 * part_ns_;
  latest_.clear();
}

double PartScreening::RatioOf(int sketch) const {
  std::vector<double> own, all;
  for (const Both& b : latest_) {
    all.push_back(b.whole_ns / b.part_ns);
    if (b.sketch == sketch) own.push_back(all.back());
  }
  std::vector<double>& ratios = own.size() >= kLeastRatios ? own : all;
  if (ratios.size() < kLeastRatios) return 1;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return std::clamp(*middle, 1 / kMostRatio, kMostRatio);
}

std::optional<double> PartScreening::RankCorrelation() const {
  std::vector<double> expected;
  for (const Both& b : latest_) expected.push_back(b.part_ns * RatioOf(b.sketch));
  int alike = 0, contrary = 0;
  for (size_t i = 0; i < latest_.size(); ++i) {
    for (size_t j = 0; j < latest_.size(); ++j) {
      if (latest_[j].whole_ns < kClear * latest_[i].whole_ns) continue;
      ++(expected[j] > expected[i] ? alike : contrary);
    }
  }
  if (alike + contrary < kLeastPairs) return std::nullopt;
  return static_cast<double>(alike - contrary) / static_cast<double>(alike + contrary);
}

}  // namespace hone::search
