#pragma once

#include <cstdint>
#include <optional>

#include "ir/stmt.h"

// A product of two small matrices that a core of a CPU makes by one instruction from tiles in
// registers (AMX: tdpbusd and its siblings for bytes, tdpbf16ps).
namespace hone::ir {

/// Rows, columns and groups of terms of a tile are at most as many.
inline constexpr int64_t kTileRows = 16;
/// Registers that hold tiles.
inline constexpr int kTileRegisters = 8;
/// Terms that lie side by side in both factors: 4 of i8 and u8, 2 of bf16, a word.
inline constexpr int64_t kTileWordBytes = 4;

/// Whether tiles multiply numbers of these types: bytes, signed or not, or two of bf16.
constexpr bool AreTileFactors(DType first, DType second) {
  const auto is_byte = [](DType d) { return d == DType::kI8 || d == DType::kU8; };
  return (is_byte(first) && is_byte(second)) || (first == DType::kBF16 && second == first);
}

/// A kFor of kind kTile, in nested loops that mean what is written:
///     tile r < rows: for c < columns: for g < groups: for t < terms:
///       sums[…] sum= i32(first[…]) * i32(second[…])
/// `first` depends on r, g and t, `second` on c, g and t; both are bytes, signed or not, whose sums
/// are i32 and wrap, or both bf16, whose sums are f32. One loop over g may be missing, of one
/// group. A machine without tiles runs the loops.
struct TileProduct {
  const StmtNode* store = nullptr;                   ///< the only statement
  int row = -1, column = -1, group = -1, term = -1;  ///< variables
  int64_t rows = 1, columns = 1, groups = 1, terms = 1;
  Expr first, second;  ///< loads
};
/// Nothing where the loop does not have this form.
std::optional<TileProduct> FindTileProduct(const StmtNode& loop);

/// Elements by which an index moves with each of the four loops.
struct TileStrides {
  int64_t row = 0, column = 0, group = 0, term = 0;
};
/// Whether tiles can be loaded and stored so: words of terms lie side by side along the groups of
/// `first` and the columns of `second`, sums along columns.
bool AreTiles(const TileProduct& product, const TileStrides& first, const TileStrides& second,
              const TileStrides& sums);

}  // namespace hone::ir
