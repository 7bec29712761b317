#include "schedule/cuda/group_tile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "ir/mma.h"
#include "schedule/box.h"
#include "schedule/cuda/slice.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

/// Numbers that a thread copies, 16 bytes.
constexpr int64_t kChunk = 8;
/// Sticks out of a result further than this: some of its points would be conditions.
constexpr int64_t kMostOutside = 64;
/// The most along y of a grid: CUDA C++ Programming Guide, "Compute Capabilities".
constexpr int64_t kMostBlocksY = 65'535;
constexpr int64_t kNominalStages = 4, kCapability = 90;
/// With fewer most of a warpgroup's rows would be none.
constexpr int64_t kLeastRows = 33;

int64_t Parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

bool SticksOut(int64_t there, int64_t tile) { return tile - there >= kMostOutside; }

}  // namespace

std::string_view GroupTile::Misfit(const ProductAxes& axes) const {
  if (axes.depth % kDepth != 0) return "a slice does not divide the sum";
  if (boxes && (stages < 2 || axes.outer_depth > 1))
    return "boxes come ahead, through one loop over slices";
  if (axes.depth / kDepth < stages) return "fewer slices than are on their way";
  if (SticksOut(axes.rows, block_rows())) return "half of the block has no rows";
  if (SticksOut(axes.columns, columns)) return "half of the block has no columns";
  // Rows of a slice that lie along columns, or along rows, come by 64.
  if (!axes.second_by_depth && columns % ir::kSwizzledRow != 0)
    return "its columns are no whole rows of a slice";
  if (Parts(axes.rows, block_rows()) > kMostBlocksY || axes.batches > kMostBlocksY)
    return "more blocks than a grid has";
  return {};
}

bool ComeAsBoxes(const ir::Workload& workload, const ir::Stage& stage, const ProductAxes& axes) {
  const auto are = [&](int tensor, int length, bool by_depth) {
    return AreBoxes(workload, stage, tensor, by_depth ? length : axes.reduce,
                    by_depth ? axes.reduce : length);
  };
  return axes.outer_depth == 1 && are(axes.first, axes.row, axes.first_by_depth) &&
         are(axes.second, axes.column, axes.second_by_depth);
}

bool SuitsGroups(const ProductAxes& axes, const ir::CudaTarget& card) {
  return card.capability == kCapability && axes.number_bytes == 2 && axes.rows >= kLeastRows &&
         axes.depth % GroupTile::kDepth == 0;
}

const std::vector<GroupTile>& GroupTiles() {
  static const std::vector<GroupTile> tiles = {{2, 1, 256}, {2, 1, 192}, {2, 2, 128}, {2, 1, 128},
                                               {1, 1, 256}, {1, 2, 128}, {2, 1, 64},  {1, 1, 128},
                                               {1, 1, 96},  {1, 1, 64},  {1, 1, 32},  {1, 1, 16}};
  return tiles;
}

int64_t BlocksOf(const ProductAxes& axes, const GroupTile& tile) {
  return axes.batches * Parts(axes.rows, tile.block_rows()) * Parts(axes.columns, tile.columns);
}

std::optional<GroupTile> NominalGroupTile(const ProductAxes& axes, const ir::CudaTarget& card) {
  if (!SuitsGroups(axes, card)) return std::nullopt;
  std::optional<GroupTile> best;
  int64_t least = 0;  // results that the multiprocessor with most tiles makes
  for (GroupTile tile : GroupTiles()) {
    tile.stages = std::min(kNominalStages, axes.depth / GroupTile::kDepth);
    if (!tile.Misfit(axes).empty() || tile.shared_bytes() > card.block_shared_bytes) continue;
    const int64_t turns = Parts(BlocksOf(axes, tile), card.multiprocessors);
    const int64_t results = turns * tile.block_rows() * tile.columns;
    if (best && results >= least) continue;
    best = tile;
    least = results;
  }
  return best;
}

void ScheduleGroupTile(TraceWriter& w, int id, const ProductAxes& axes, const GroupTile& tile) {
  const ir::Stage stage = w.stage(id);
  const auto loop = [&](int axis) { return LoopOfAxis(stage.name, stage.num_spatial(), axis); };
  const std::string m = loop(axes.row), n = loop(axes.column), k = loop(axes.reduce);
  // Warpgroups, instructions of one along rows, its warps, what a lane has of an instruction and
  // lanes: a lane has two rows that lie eight apart, and two neighbours of each eight columns.
  w.Emit(fmt::format("split({}, [{}, {}, 4, 2, 8], mask)", m, tile.groups, tile.rows));
  w.Emit(fmt::format("split({}, [{}, 4, 2], mask)", n, tile.columns / ir::kMmaColumns));
  w.Emit(fmt::format("split({}, {})", k, GroupTile::kDepth));
  std::vector<std::string> order;
  for (const int a : axes.batch) order.push_back(loop(a));
  order.insert(order.end(), {m + ".0", n + ".0", m + ".1", m + ".3", m + ".5", n + ".2"});
  for (const int r : axes.other_reduce) order.push_back(loop(r));
  order.insert(order.end(), {k + ".0", m + ".2", m + ".4", n + ".1", n + ".3", k + ".1"});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  const bool along_z =
      axes.batches > 1 && axes.batches * Parts(axes.rows, tile.block_rows()) > kMostBlocksY;
  const int fused = BindBlocks(w, id, axes, along_z);
  const std::string warp = fmt::format("{}.f{}", stage.name, fused),
                    lane = fmt::format("{}.f{}", stage.name, fused + 1);
  w.Emit(fmt::format("{} = fuse({}.1, {}.3)", warp, m, m));
  w.Emit(fmt::format("{} = fuse({}.5, {}.2)", lane, m, n));
  w.Emit(fmt::format("bind({}, thread.y)", warp));
  w.Emit(fmt::format("bind({}, thread.x)", lane));
  w.Emit(fmt::format("{} = cache_write({}, register, at={})", w.NextStage(), stage.name, lane));
  w.Emit(fmt::format("unroll({}.2)", m));
  w.Emit(fmt::format("unroll({}.1)", n));
  w.Emit(fmt::format("tensorize({}.4, wgmma)", m));
  w.Emit(fmt::format("vectorize({}.3)", n));
  // Rows along what lies side by side in memory.
  const auto copy = [&](int tensor, int length, bool by_depth) {
    const std::string made = w.NextStage();
    CopySlice(w, id, k + ".0",
              {.tensor = tensor,
               .outer = by_depth ? length : axes.reduce,
               .inner = by_depth ? axes.reduce : length,
               .along_inner = true,
               .lanes = tile.boxes ? 0 : kChunk},
              tile.warps(), ir::kMmaLanes);
    w.Emit(fmt::format("swizzle({})", made));
  };
  copy(axes.first, axes.row, axes.first_by_depth);
  copy(axes.second, axes.column, axes.second_by_depth);
  if (tile.stages > 1)
    w.Emit(fmt::format("pipeline({}.0, {}{})", k, tile.stages, tile.boxes ? ", boxes" : ""));
}

std::optional<GroupTile> ReadGroupTile(const Trace& trace, const std::string& stage) {
  std::vector<int64_t> rows, columns;
  GroupTile tile{.stages = 1};
  for (const Instruction& i : trace.instructions) {
    if (i.positional.empty() || !i.positional[0].starts_with(stage + ".")) continue;
    if (i.primitive == "pipeline") {
      tile.stages = std::strtoll(i.positional[1].c_str(), nullptr, 10);
      tile.boxes = i.positional.size() > 2;
    }
    if (i.primitive != "split" || i.positional[0].starts_with(stage + ".r")) continue;
    (rows.empty() ? rows : columns) = FactorsOf(trace, i.positional[0]);
  }
  if (rows.size() != 5 || columns.size() != 3) return std::nullopt;
  tile.groups = rows[0];
  tile.rows = rows[1];
  tile.columns = columns[0] * ir::kMmaColumns;
  return tile;
}

}  // namespace hone::schedule
