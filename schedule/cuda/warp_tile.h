#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/cuda/cuda_target.h"
#include "ir/mma.h"
#include "schedule/cuda/product.h"
#include "schedule/trace_writer.h"

// A sum of products of f16, bf16 or bytes on a grid: a block of warps makes a tile of the result by
// tensor cores (tensorize(LOOP, mma)); slices of both factors come through shared memory, from
// where the lanes of a warp fetch matrices.
namespace hone::schedule {

/// The numbers of a tile. A warp has `rows` times 16 rows and `columns` times 8 columns that lie
/// together.
struct WarpTile {
  int64_t warps_y = 2, rows = 4, warps_x = 2, columns = 8;
  int64_t depth = 32;        ///< iterations of a slice, a multiple of 16, of bytes of 32
  int64_t stages = 1;        ///< slices that exist at once, later ones on their way
  int64_t number_bytes = 2;  ///< of a factor: f16 and bf16, or bytes
  bool through = false;      ///< results are stored through shared memory, by 16 bytes

  int64_t block_rows() const { return warps_y * rows * 16; }
  int64_t block_columns() const { return warps_x * columns * 8; }
  int64_t warps() const { return warps_y * warps_x; }
  int64_t threads() const { return warps() * 32; }
  /// Terms that a warp multiplies at once.
  int64_t terms() const {
    const int64_t one = ir::kMmaTermBytes / number_bytes;
    return depth % (2 * one) == 0 ? 2 * one : one;
  }
  /// At most: rows of a slice are apart, so that the eight of a matrix lie in all banks.
  int64_t shared_bytes() const;
  /// Why it is no tile of these sums; empty: it is one.
  std::string_view Misfit(const ProductAxes& axes) const;
};

/// Whether tensor cores can make the sum, and it is large enough for them.
bool SuitsTensorCores(const ProductAxes& axes);

/// Tiles, the largest first, of depth 32 and numbers of 16 bits.
const std::vector<WarpTile>& WarpTiles();
/// Blocks of a launch.
int64_t BlocksOf(const ProductAxes& axes, const WarpTile& tile);
/// The depth of the slices of a sum where others have `wanted`: that, or a smaller one that divides
/// its own, but no less than one instruction takes.
int64_t WarpSliceDepth(const ProductAxes& axes, int64_t wanted);
/// The largest tile that gives every multiprocessor a block; where none does, the one with most
/// blocks. Nothing where the sum does not suit tensor cores.
std::optional<WarpTile> NominalWarpTile(const ProductAxes& axes, const ir::CudaTarget& card);
/// Schedules a root Stage.
void ScheduleWarpTile(TraceWriter& writer, int stage, const ProductAxes& axes,
                      const WarpTile& tile);
/// The tile from which ScheduleWarpTile wrote the loops of the Stage of this name; nothing where it
/// wrote none.
std::optional<WarpTile> ReadWarpTile(const Trace& trace, const std::string& stage);

}  // namespace hone::schedule
