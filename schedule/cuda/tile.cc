#include "schedule/cuda/tile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "schedule/cuda/slice.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

constexpr int64_t kDepths[] = {16, 8, 32, 4};
/// The most along y of a grid, and along z: CUDA C++ Programming Guide, "Compute Capabilities".
constexpr int64_t kMostBlocksY = 65'535;
/// Unused elements after each row of a slice that is turned: threads that write a column of it
/// would share a bank, and vectors of a row stay aligned.
constexpr int64_t kRowGap = 4;

int64_t Parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

}  // namespace

int64_t BlockTile::shared_bytes() const {
  return 4 * stages * (depth * (block_rows() + block_columns() + kRowGap) + kRowGap * block_rows());
}

const std::vector<BlockTile>& BlockTiles() {
  static const std::vector<BlockTile> tiles = {
      {16, 8, 16, 2, 0}, {16, 8, 16, 1, 0}, {8, 8, 16, 2, 0}, {16, 4, 16, 1, 0}, {8, 8, 8, 2, 0},
      {8, 4, 16, 1, 0},  {8, 4, 8, 1, 0},   {4, 4, 16, 1, 0}, {8, 2, 8, 1, 0},   {4, 4, 8, 1, 0}};
  return tiles;
}

int64_t BlocksOf(const ProductAxes& axes, const BlockTile& tile) {
  return axes.batches * Parts(axes.rows, tile.block_rows()) *
         Parts(axes.columns, tile.block_columns());
}

bool BatchesAlongZ(const ProductAxes& axes, const BlockTile& tile) {
  return axes.batches > 1 && axes.batches * Parts(axes.rows, tile.block_rows()) > kMostBlocksY;
}

bool FitsGrid(const ProductAxes& axes, int64_t parts, const BlockTile& tile) {
  return Parts(axes.rows, tile.block_rows()) <= kMostBlocksY &&
         axes.batches * parts <= kMostBlocksY;
}

int64_t SliceDepth(const ProductAxes& axes, int64_t wanted) {
  while (wanted > 4 && axes.depth % wanted != 0) wanted /= 2;
  return wanted;
}

std::optional<BlockTile> NominalBlock(const ProductAxes& axes, const ir::CudaTarget& card) {
  std::optional<BlockTile> best;
  for (BlockTile tile : BlockTiles()) {
    const auto depth =
        std::ranges::find_if(kDepths, [&](int64_t d) { return axes.depth % d == 0; });
    if (depth == std::end(kDepths)) return std::nullopt;
    tile.depth = *depth;
    const int64_t blocks_y = axes.batches * Parts(axes.rows, tile.block_rows());
    if (blocks_y > kMostBlocksY || tile.WastesRows(axes.rows)) continue;
    if (!best || BlocksOf(axes, tile) > BlocksOf(axes, *best)) best = tile;
    if (BlocksOf(axes, *best) >= card.multiprocessors) break;
  }
  return best;
}

void ScheduleProduct(TraceWriter& w, int id, const ProductAxes& axes, const BlockTile& tile) {
  const ir::Stage stage = w.stage(id);
  const int spatial = stage.num_spatial();
  const auto loop = [&](int axis) { return LoopOfAxis(stage.name, spatial, axis); };
  const std::string m = loop(axes.row), n = loop(axes.column), k = loop(axes.reduce);
  w.Emit(fmt::format("split({}, [{}, {}], mask)", m, tile.rows, tile.threads_y));
  w.Emit(fmt::format("split({}, [{}, {}, {}], mask)", n, tile.vectors, tile.threads_x,
                     BlockTile::kLanes));
  w.Emit(fmt::format("split({}, {})", k, tile.depth));
  std::vector<std::string> order;
  for (const int a : axes.batch) order.push_back(loop(a));
  order.insert(order.end(), {m + ".0", n + ".0", m + ".2", n + ".2"});
  for (const int r : axes.other_reduce) order.push_back(loop(r));
  order.insert(order.end(), {k + ".0", k + ".1", m + ".1", n + ".1", n + ".3"});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  BindBlocks(w, id, axes, BatchesAlongZ(axes, tile));
  w.Emit(fmt::format("bind({}.2, thread.y)", m));
  w.Emit(fmt::format("bind({}.2, thread.x)", n));
  w.Emit(fmt::format("{} = cache_write({}, register, at={}.2)", w.NextStage(), stage.name, n));
  w.Emit(fmt::format("unroll({}.1)", m));
  w.Emit(fmt::format("unroll({}.1)", n));
  w.Emit(fmt::format("vectorize({}.3)", n));
  const auto copy = [&](const Slice& slice) {
    CopySlice(w, id, k + ".0", slice, tile.threads_y, tile.threads_x);
  };
  // A slice that is turned on its way has its rows apart.
  copy({.tensor = axes.first,
        .outer = axes.row,
        .inner = axes.reduce,
        .along_inner = axes.first_by_depth,
        .lanes = BlockTile::kLanes,
        .row_gap = axes.first_by_depth ? 0 : kRowGap});
  copy({.tensor = axes.second,
        .outer = axes.reduce,
        .inner = axes.column,
        .along_inner = !axes.second_by_depth,
        .lanes = BlockTile::kLanes,
        .row_gap = axes.second_by_depth ? kRowGap : 0});
  if (tile.stages > 1) w.Emit(fmt::format("pipeline({}.0, {})", k, tile.stages));
}

std::optional<BlockTile> ReadProduct(const Trace& trace, const std::string& stage) {
  std::vector<int64_t> rows, columns, depth;
  for (const Instruction& i : trace.instructions) {
    if (i.primitive != "split" || i.positional.empty()) continue;
    const std::string& loop = i.positional[0];
    if (!loop.starts_with(stage + ".")) continue;
    const std::vector<int64_t> factors = FactorsOf(trace, loop);
    if (loop.starts_with(stage + ".r")) {
      depth = factors;
    } else {
      (factors.size() == 3 ? columns : rows) = factors;
    }
  }
  if (rows.size() != 2 || columns.size() != 3 || depth.size() != 1) return std::nullopt;
  BlockTile tile{rows[1], rows[0], columns[1], columns[0], depth[0]};
  for (const Instruction& i : trace.instructions) {
    if (i.primitive == "pipeline" && i.positional.size() == 2 &&
        i.positional[0].starts_with(stage + "."))
      tile.stages = std::strtoll(i.positional[1].c_str(), nullptr, 10);
  }
  return tile;
}

}  // namespace hone::schedule
