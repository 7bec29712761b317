#include "ir/zero_pattern.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/core/random.h"

namespace hone::ir {
namespace {

/// Which of `all` things are kept: `kept` of them, each set as likely.
class Lottery {
 public:
  Lottery(int64_t kept, int64_t all, Random* random) : kept_(kept), left_(all), random_(*random) {}
  bool Draw() {
    const bool wins = static_cast<int64_t>(random_.Below(static_cast<uint64_t>(left_--))) < kept_;
    kept_ -= wins ? 1 : 0;
    return wins;
  }

 private:
  int64_t kept_, left_;
  Random& random_;
};

void MakeZerosOfPanel(const ZeroPattern& p, int64_t first, int groups, Random random,
                      std::span<float> matrix) {
  const int64_t end = std::min(first + p.width, p.columns);
  const int64_t kept = p.terms * groups / ZeroPattern::kSteps;
  // What the fullest panel keeps of its values, others keep in proportion.
  const int64_t values = std::min<int64_t>(
      kept * (end - first), p.terms * (end - first) * p.values * groups /
                                (ZeroPattern::kSteps * std::max(1, p.groups.back())));
  Lottery of_groups(kept, p.terms, &random), of_values(values, kept * (end - first), &random);
  for (int64_t k = 0; k < p.terms; ++k) {
    const bool group = of_groups.Draw();
    for (int64_t n = first; n < end; ++n) {
      if (group && of_values.Draw()) continue;
      matrix[static_cast<size_t>(k * p.term_stride + n * p.column_stride)] = 0;
    }
  }
}

}  // namespace

int64_t ZeroPattern::EndOf(int part, int64_t panels) {
  return std::max<int64_t>(1, (part + 1) * panels / kParts);
}

bool ZeroPattern::Fits(int64_t elements) const {
  constexpr int64_t kMost = int64_t{1} << 38;
  const auto is_extent = [&](int64_t n) { return n > 0 && n <= std::min(elements, kMost); };
  if (!is_extent(columns) || !is_extent(terms) || !is_extent(column_stride) ||
      !is_extent(term_stride) || width < 1 || values < 0 || values > kSteps)
    return false;
  int64_t all = 0, last = 0, along = 0;
  const bool overflows = __builtin_mul_overflow(columns, terms, &all) ||
                         __builtin_mul_overflow(columns - 1, column_stride, &last) ||
                         __builtin_mul_overflow(terms - 1, term_stride, &along) ||
                         __builtin_add_overflow(last, along, &last);
  return !overflows && all == elements && last < elements &&
         std::ranges::all_of(groups, [](int32_t g) { return g >= 0 && g <= kSteps; });
}

void MakeZeros(const ZeroPattern& p, uint64_t seed, std::span<float> matrix) {
  const Random random(seed);
  const int64_t panels = (p.columns + p.width - 1) / p.width;
  // Full panels stand between others, so that threads have like shares.
  std::vector<int64_t> order(static_cast<size_t>(panels));
  std::iota(order.begin(), order.end(), 0);
  Random of_order = random.Fork(0);
  of_order.Shuffle(order);
  int part = 0;
  for (int64_t rank = 0; rank < panels; ++rank) {
    while (rank >= ZeroPattern::EndOf(part, panels)) ++part;
    const int groups = p.groups[static_cast<size_t>(part)];
    const int64_t panel = order[static_cast<size_t>(rank)];
    MakeZerosOfPanel(p, panel * p.width, groups, random.Fork(static_cast<uint64_t>(panel) + 1),
                     matrix);
  }
}

}  // namespace hone::ir
