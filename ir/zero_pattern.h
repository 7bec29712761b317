#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hone::ir {

/// Zeros as pruned weights may have them, of which only counts are known (ir/kept_panels.h): for
/// measuring and checking. std only.
struct ZeroPattern {
  static constexpr int kSteps = 32;  ///< of a share
  static constexpr int kParts = 8;   ///< of all panels

  int64_t columns = 0, terms = 0;  ///< of the matrix; no columns: nothing is zero
  int64_t column_stride = 1, term_stride = 1;
  int64_t width = 16;                   ///< columns of a panel
  std::array<int32_t, kParts> groups{};  ///< that each eighth of the panels keeps, in 32nds
  int32_t values = 0;                   ///< that the fullest panel keeps, in 32nds

  /// Panels of so many, by rank, that an eighth and those before it hold; at least one.
  static int64_t EndOf(int part, int64_t panels);
  /// Whether it can be that of a matrix of so many elements.
  bool Fits(int64_t elements) const;
};

/// Makes zeros so that no panel keeps more than the pattern says, and hardly less. The same
/// everywhere for the same pattern and seed. The pattern fits the matrix.
void MakeZeros(const ZeroPattern& pattern, uint64_t seed, std::span<float> matrix);

}  // namespace hone::ir
