#pragma once

#include <cstdint>
#include <optional>

#include "ir/stmt.h"

// A product of two matrices in shared memory that the 128 threads of a GPU's warpgroup begin
// together (wgmma of PTX: m64nNk16 of f16 and bf16 with sums in f32). It is made while they go on.
namespace hone::ir {

inline constexpr int64_t kGroupWarps = 4;  ///< those of a block from a multiple of four on
inline constexpr int64_t kGroupRows = 64, kGroupTerms = 16;
/// Columns come by eight, as mma has them (ir/mma.h).
inline constexpr int64_t kMostGroupColumns = 256;
/// Numbers of a row of a swizzled buffer, 128 bytes, and of what a matrix begins at a multiple of.
inline constexpr int64_t kSwizzledRow = 64, kSwizzledPiece = 512;

/// A kFor of kind kWgmma, in nested loops that mean what is written:
///     wgmma r < 2: for j < columns / 8: for c < 2: for k < 16·n:
///       sums[…] sum= f32(first[…]) * f32(second[…])
/// `first` depends on r and k, `second` on j, c and k; both lie in swizzled shared memory and are
/// f16, or both bf16. Threads are warps of 32 lanes (thread.x) side by side (thread.y). A lane's
/// rows are those of an mma in the 16 of its warp, which is number thread.y mod 4 of 64 rows; its
/// columns are those of an mma in each of the eights.
///
/// The loops give the sums at once. A machine may give them later: until its thread has waited for
/// them (AwaitProducts) nobody touches the sums or changes the factors.
struct WgmmaLoop {
  const StmtNode* store = nullptr;                   ///< the only statement
  int row = -1, eight = -1, column = -1, term = -1;  ///< variables
  int64_t columns = 0, terms = 0;
  Expr first, second;  ///< loads
};
/// Nothing where the loop does not have this form.
std::optional<WgmmaLoop> FindWgmma(const StmtNode& loop);

/// Where element (i, k) of a factor lies, in numbers from its element (0, 0): rows of 64 numbers,
/// side by side in pieces of as many numbers in both directions, the i or the k of a row.
struct FactorLayout {
  bool by_term = true;   ///< k along a row
  int64_t next_row = 0;  ///< from one piece to the next along what a row has
  int64_t Of(int64_t i, int64_t k) const {
    const int64_t along = by_term ? k : i, across = by_term ? i : k;
    return along / kSwizzledRow * next_row + across * kSwizzledRow + along % kSwizzledRow;
  }
};

/// This thread waits until at most so many of its latest wgmma loops are on their way. `sums`: the
/// buffer of the sums of all of them.
Stmt AwaitProducts(int sums, int64_t loops);
/// -1: it is no such wait.
int64_t AwaitedProducts(const StmtNode& node);

/// Whether a kSync is for machines alone: where loops run as they are written it says nothing.
bool IsOrderOfMachines(const StmtNode& node);

/// What this thread has written to shared memory so far may be read by wgmma loops, its own and,
/// after the next Sync, those of others.
Stmt ShowToProducts();
bool IsShowToProducts(const StmtNode& node);

}  // namespace hone::ir
