#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/cuda/cuda_target.h"
#include "ir/wgmma.h"
#include "schedule/cuda/product.h"
#include "schedule/trace_writer.h"

// A sum of products of f16 or bf16 on a grid: a block of one or two warpgroups makes a tile of the
// result by wgmma (tensorize(LOOP, wgmma)) from swizzled slices of both factors.
namespace hone::schedule {

/// The numbers of a tile. A warpgroup has `rows` times 64 rows that lie together and all columns.
struct GroupTile {
  int64_t groups = 2, rows = 1;
  int64_t columns = 128;
  int64_t stages = 4;  ///< slices that exist at once, later ones on their way
  bool boxes = false;  ///< they come as boxes of tensors

  /// Iterations of a slice.
  static constexpr int64_t kDepth = ir::kSwizzledRow;
  int64_t block_rows() const { return groups * rows * ir::kGroupRows; }
  int64_t warps() const { return groups * ir::kGroupWarps; }
  int64_t threads() const { return warps() * 32; }
  int64_t sums() const { return rows * columns / 2; }  ///< of a lane
  /// With the barriers where boxes arrive.
  int64_t shared_bytes() const {
    constexpr int64_t kBarriers = 64;
    return stages * 2 * kDepth * (block_rows() + columns) + kBarriers;
  }
  /// Why it is no tile of these sums; empty: it is one.
  std::string_view Misfit(const ProductAxes& axes) const;
};

/// Whether slices of both factors are boxes of tensors.
bool ComeAsBoxes(const ir::Workload& workload, const ir::Stage& stage, const ProductAxes& axes);

/// Whether warpgroups of the card can make the sum, and it is large enough for them.
bool SuitsGroups(const ProductAxes& axes, const ir::CudaTarget& card);

/// Tiles, the largest first, of as many stages as fit.
const std::vector<GroupTile>& GroupTiles();
int64_t BlocksOf(const ProductAxes& axes, const GroupTile& tile);
/// The tile of which the multiprocessor with most of them makes the fewest results, the largest of
/// several. Nothing where the sum does not suit warpgroups.
std::optional<GroupTile> NominalGroupTile(const ProductAxes& axes, const ir::CudaTarget& card);
/// Schedules a root Stage.
void ScheduleGroupTile(TraceWriter& writer, int stage, const ProductAxes& axes,
                       const GroupTile& tile);
/// The tile from which ScheduleGroupTile wrote the loops of the Stage of this name; nothing where
/// it wrote none.
std::optional<GroupTile> ReadGroupTile(const Trace& trace, const std::string& stage);

}  // namespace hone::schedule
