#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hone::search {

/// What screening on a part of the work is worth for one task: candidates that were run both ways
/// say how much longer the whole takes than its part says, and whether parts rank as the whole
/// does. Where they do not the part grows, and in the end screening is on the whole. No clock, no
/// I/O.
class PartScreening {
 public:
  static constexpr int64_t kFirstPartNs = 4'000'000, kMostPartNs = 32'000'000;
  /// The ranking is judged by so many candidates, and so many pairs of them at least.
  static constexpr size_t kLeastBoth = 8, kMostBoth = 32;
  static constexpr int kLeastPairs = 12;
  /// Whole times that differ by less say nothing about the ranking.
  static constexpr double kClear = 1.05;
  static constexpr double kLeastCorrelation = 0.6;

  /// For how long the default schedule would run in a part; 0: the whole is screened.
  int64_t part_ns() const { return part_ns_; }
  /// A candidate that was run both ways: what its part says of a whole run, and a whole run.
  void Add(int sketch, double part_ns, double whole_ns);
  /// How much longer a whole run takes than a part of this Sketch's candidates says: the median of
  /// its own, where there are too few of all; 1 before.
  double RatioOf(int sketch) const;
  /// Kendall's rank correlation of parts (times RatioOf) with wholes, over the pairs of candidates
  /// whose whole times differ clearly; nothing below kLeastPairs of them.
  std::optional<double> RankCorrelation() const;
  /// Candidates that were run both ways so far, with parts of every length.
  int64_t both() const { return both_; }
  /// Whether another candidate should be run both ways, of so many results.
  bool WantsBoth(int results) const { return part_ns_ > 0 && both_ < 4 + results / 16; }

 private:
  struct Both {
    int sketch = 0;
    double part_ns = 0, whole_ns = 0;
  };

  int64_t part_ns_ = kFirstPartNs;
  int64_t both_ = 0;
  std::vector<Both> latest_;  ///< with parts of this length, the newest last
};

}  // namespace hone::search
