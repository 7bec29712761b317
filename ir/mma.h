#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "ir/stmt.h"

// A product of two small matrices that the 32 lanes of a GPU's warp make together, each of them
// four of its elements (mma.sync of PTX: m16n8k16 of f16 and bf16, m16n8k32 of bytes).
namespace hone::ir {

inline constexpr int64_t kMmaLanes = 32;
inline constexpr int64_t kMmaRows = 16, kMmaColumns = 8;
/// Bytes of a factor's row, which are the terms that one instruction adds up.
inline constexpr int64_t kMmaTermBytes = 32, kMostMmaTerms = 32;
/// 16 of f16 and bf16, 32 of i8 and u8.
int64_t MmaTermsOf(DType factor);
/// Rows, columns of the lane's own elements: the loops of an mma.
inline constexpr int64_t kMmaRowHalves = 2, kMmaColumnPair = 2;

/// A kFor of kind kMma, in nested loops that mean what is written:
///     mma r < 2: for c < 2: for k < 16·n:
///       sums[…] sum= f32(first[…]) * f32(second[…])
/// `first` depends on r and k, `second` on c and k; both lie in shared memory and are f16, or both
/// bf16. Bytes, signed or not, are summed in i32, which wraps, and k < 32·n. The thread is
/// lane `thread number mod 32` of its warp. Its row 0 is number lane div 4 of 16, its row 1 eight
/// further; its columns are 2·(lane mod 4) and the next one of 8. All lanes of the warp come to it,
/// and each may read what belongs to the others.
struct MmaLoop {
  const StmtNode* store = nullptr;       ///< the only statement
  int row = -1, column = -1, term = -1;  ///< variables
  int64_t terms = 0;
  Expr first, second;  ///< loads

  DType sum_dtype() const { return store->values[0]->dtype; }
  /// Terms of one instruction.
  int64_t step() const { return MmaTermsOf(first->dtype); }
};
/// Nothing where the loop does not have this form.
std::optional<MmaLoop> FindMma(const StmtNode& loop);

/// A place in a tile of 16 rows, 8 columns and 16 or 32 terms; what a matrix lacks is 0.
struct MmaPlace {
  int64_t row = 0, column = 0, term = 0;
};
/// Which element a lane holds as its number `element` of the first factor (half as many as there
/// are terms), the second (a quarter) and the sums (4): PTX ISA, "Matrix Fragments for
/// mma.m16n8k16 with floating point type" and "Matrix Fragments for mma.m16n8k32".
MmaPlace FirstPlace(int64_t lane, int64_t element, int64_t terms);
MmaPlace SecondPlace(int64_t lane, int64_t element, int64_t terms);
MmaPlace SumPlace(int64_t lane, int64_t element);

inline constexpr size_t kMmaSums = 4;  ///< of a lane
/// What the lanes of a warp hold, by lane.
struct MmaFragments {
  int64_t terms = 16;
  std::array<std::array<double, kMostMmaTerms / 2>, kMmaLanes> first = {};
  std::array<std::array<double, kMostMmaTerms / 4>, kMmaLanes> second = {};
  std::array<std::array<double, kMmaSums>, kMmaLanes> sums = {};
};
/// Adds the product to the sums, not rounded.
void MultiplyFragments(MmaFragments* fragments);

}  // namespace hone::ir
