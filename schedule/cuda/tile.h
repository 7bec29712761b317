#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/cuda/cuda_target.h"
#include "schedule/cuda/product.h"
#include "schedule/trace_writer.h"

// A sum of products on a grid: a block of threads makes a tile of the result, a thread a tile of
// that in registers; slices of both factors come through shared memory.
namespace hone::schedule {

/// The numbers of a tile. A thread has `rows` rows, every `threads_y`-th, and `vectors` times four
/// columns.
struct BlockTile {
  int64_t threads_y = 16, rows = 8, threads_x = 16, vectors = 2;
  int64_t depth = 16;  ///< iterations of a slice
  int64_t stages = 1;  ///< slices that exist at once, later ones on their way

  static constexpr int64_t kLanes = 4;
  int64_t block_rows() const { return threads_y * rows; }
  int64_t block_columns() const { return threads_x * vectors * kLanes; }
  int64_t threads() const { return threads_y * threads_x; }
  /// Whether half of its rows or more are not there, and a smaller tile is.
  bool WastesRows(int64_t there) const { return block_rows() > 16 && block_rows() >= 2 * there; }
  /// At most: a factor that is turned on its way has its rows apart.
  int64_t shared_bytes() const;
};

/// Tiles, the largest first; depth is 0.
const std::vector<BlockTile>& BlockTiles();
/// Blocks of a launch.
int64_t BlocksOf(const ProductAxes& axes, const BlockTile& tile);
/// Whether the tiles along rows, those of all batches, are more than a grid has along y: then the
/// batches are along z.
bool BatchesAlongZ(const ProductAxes& axes, const BlockTile& tile);
/// Whether a grid has as many blocks where the sum is cut into so many parts.
bool FitsGrid(const ProductAxes& axes, int64_t parts, const BlockTile& tile);
/// The depth of the slices of a sum where others have `wanted`: that, or a smaller one that divides
/// its own.
int64_t SliceDepth(const ProductAxes& axes, int64_t wanted);
/// The largest tile that gives every multiprocessor a block; where none does, the one with most
/// blocks. Nothing where no slice fits.
std::optional<BlockTile> NominalBlock(const ProductAxes& axes, const ir::CudaTarget& card);
/// Schedules a root Stage.
void ScheduleProduct(TraceWriter& writer, int stage, const ProductAxes& axes,
                     const BlockTile& tile);
/// The tile from which ScheduleProduct wrote the loops of the Stage of this name; nothing where it
/// wrote none.
std::optional<BlockTile> ReadProduct(const Trace& trace, const std::string& stage);

}  // namespace hone::schedule
