#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "ir/stmt.h"

// A product of two small matrices that the 32 lanes of a GPU's warp make together, each of them
// four of its elements (mma.sync.m16n8k16 of PTX).
namespace hone::ir {

inline constexpr int64_t kMmaLanes = 32;
inline constexpr int64_t kMmaRows = 16, kMmaColumns = 8, kMmaTerms = 16;
/// Rows, columns of the lane's own elements: the loops of an mma.
inline constexpr int64_t kMmaRowHalves = 2, kMmaColumnPair = 2;

/// A kFor of kind kMma, in nested loops that mean what is written:
///     mma r < 2: for c < 2: for k < 16·n:
///       sums[…] sum= f32(first[…]) * f32(second[…])
/// `first` depends on r and k, `second` on c and k; both lie in shared memory and are f16, or both
/// bf16. The thread is lane `thread number mod 32` of its warp. Its row 0 is number lane div 4 of
/// 16, its row 1 eight further; its columns are 2·(lane mod 4) and the next one of 8. All lanes of
/// the warp come to it, and each may read what belongs to the others.
struct MmaLoop {
  const StmtNode* store = nullptr;       ///< the only statement
  int row = -1, column = -1, term = -1;  ///< variables
  int64_t terms = 0;
  Expr first, second;  ///< loads
  DType dtype = DType::kF16;
};
/// Nothing where the loop does not have this form.
std::optional<MmaLoop> FindMma(const StmtNode& loop);

/// A place in a tile of 16 rows, 8 columns and 16 terms; what a matrix lacks is 0.
struct MmaPlace {
  int64_t row = 0, column = 0, term = 0;
};
/// Which element a lane holds as its number `element` of the first factor (8 of them), the second
/// (4) and the sums (4): PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
MmaPlace FirstPlace(int64_t lane, int64_t element);
MmaPlace SecondPlace(int64_t lane, int64_t element);
MmaPlace SumPlace(int64_t lane, int64_t element);

inline constexpr size_t kMmaFirst = 8, kMmaSecond = 4, kMmaSums = 4;  ///< elements of a lane
/// What the lanes of a warp hold, by lane.
struct MmaFragments {
  std::array<std::array<double, kMmaFirst>, kMmaLanes> first = {};
  std::array<std::array<double, kMmaSecond>, kMmaLanes> second = {};
  std::array<std::array<double, kMmaSums>, kMmaLanes> sums = {};
};
/// Adds the product to the sums, not rounded.
void MultiplyFragments(MmaFragments* fragments);

}  // namespace hone::ir
