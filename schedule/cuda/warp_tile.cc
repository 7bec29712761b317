#include "schedule/cuda/warp_tile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "ir/mma.h"
#include "schedule/cuda/slice.h"
#include "schedule/cuda/tile.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

constexpr int64_t kLeastRows = 16, kLeastColumns = 16;
/// Bytes that a thread copies, of a row of a matrix, and of the gap between rows of a slice. With
/// it the rows of a matrix begin at different multiples of four banks, since a row of a slice is an
/// odd number of chunks.
constexpr int64_t kChunkBytes = 16;
/// Sticks out of a result further than this: some of its points would be conditions.
constexpr int64_t kMostOutside = 64;
/// The most along y of a grid: CUDA C++ Programming Guide, "Compute Capabilities".
constexpr int64_t kMostBlocksY = 65'535;
/// What a block takes by default, so that code for a chip runs on every later one.
constexpr int64_t kNominalSharedBytes = 48 << 10, kNominalStages = 3;

int64_t Parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

bool SticksOut(int64_t there, int64_t tile) { return tile - there >= kMostOutside; }

/// Bytes of a slice of one factor, whichever way round it lies.
int64_t SliceBytes(int64_t length, int64_t depth, int64_t number_bytes) {
  return number_bytes * length * depth + kChunkBytes * std::max(length, depth);
}

int64_t TermsOf(const ProductAxes& axes) { return ir::kMmaTermBytes / axes.number_bytes; }

}  // namespace

int64_t WarpTile::shared_bytes() const {
  constexpr int64_t kSumBytes = 4, kGap = 8;
  const int64_t box = through ? warps() * 16 * (8 * columns + kGap) * kSumBytes : 0;
  return box + stages * (SliceBytes(block_rows(), depth, number_bytes) +
                         SliceBytes(block_columns(), depth, number_bytes));
}

std::string_view WarpTile::Misfit(const ProductAxes& axes) const {
  if (axes.depth % depth != 0) return "a slice does not divide the sum";
  if (SticksOut(axes.rows, block_rows()) || (rows > 1 && block_rows() >= 2 * axes.rows))
    return "half of the block has no rows";
  if (SticksOut(axes.columns, block_columns())) return "half of the block has no columns";
  if (through && axes.columns % (kChunkBytes / 4) != 0)
    return "rows of the result are no whole 16 bytes";
  if (Parts(axes.rows, block_rows()) > kMostBlocksY || axes.batches > kMostBlocksY)
    return "more blocks than a grid has";
  return {};
}

bool SuitsTensorCores(const ProductAxes& axes) {
  return axes.number_bytes < 4 && axes.rows >= kLeastRows && axes.columns >= kLeastColumns &&
         axes.depth % TermsOf(axes) == 0;
}

const std::vector<WarpTile>& WarpTiles() {
  static const std::vector<WarpTile> tiles = {
      {2, 4, 2, 8}, {2, 4, 4, 4}, {4, 2, 2, 4}, {2, 2, 2, 8}, {2, 2, 2, 4},
      {2, 1, 2, 4}, {1, 1, 4, 2}, {2, 1, 2, 2}, {1, 1, 2, 2}, {1, 1, 2, 1}};
  return tiles;
}

int64_t BlocksOf(const ProductAxes& axes, const WarpTile& tile) {
  return axes.batches * Parts(axes.rows, tile.block_rows()) *
         Parts(axes.columns, tile.block_columns());
}

int64_t WarpSliceDepth(const ProductAxes& axes, int64_t wanted) {
  while (wanted > TermsOf(axes) && axes.depth % wanted != 0) wanted /= 2;
  return std::max(wanted, TermsOf(axes));
}

std::optional<WarpTile> NominalWarpTile(const ProductAxes& axes, const ir::CudaTarget& card) {
  if (!SuitsTensorCores(axes) || card.tensor_flop_per_second == 0) return std::nullopt;
  std::optional<WarpTile> best;
  for (WarpTile tile : WarpTiles()) {
    tile.number_bytes = axes.number_bytes;
    // As many bytes of a row.
    tile.depth = WarpSliceDepth(axes, 2 * tile.depth / axes.number_bytes);
    if (!tile.Misfit(axes).empty()) continue;
    if (!best || BlocksOf(axes, tile) > BlocksOf(axes, *best)) best = tile;
    if (BlocksOf(axes, *best) >= card.multiprocessors) break;
  }
  if (!best) return std::nullopt;
  for (best->stages = std::min(kNominalStages, axes.depth / best->depth);
       best->stages > 1 && best->shared_bytes() > kNominalSharedBytes;)
    --best->stages;
  return best;
}

void ScheduleWarpTile(TraceWriter& w, int id, const ProductAxes& axes, const WarpTile& tile) {
  const ir::Stage stage = w.stage(id);
  const auto loop = [&](int axis) { return LoopOfAxis(stage.name, stage.num_spatial(), axis); };
  const std::string m = loop(axes.row), n = loop(axes.column), k = loop(axes.reduce);
  // Warps, matrices of a warp, what a lane has of a matrix and lanes: a lane has two rows that lie
  // eight apart and two neighbouring columns.
  w.Emit(fmt::format("split({}, [{}, {}, 2, 8], mask)", m, tile.warps_y, tile.rows));
  w.Emit(fmt::format("split({}, [{}, {}, 4, 2], mask)", n, tile.warps_x, tile.columns));
  const bool steps = tile.depth > tile.terms();
  w.Emit(steps ? fmt::format("split({}, [{}, {}])", k, tile.depth / tile.terms(), tile.terms())
               : fmt::format("split({}, {})", k, tile.depth));
  std::vector<std::string> order;
  for (const int a : axes.batch) order.push_back(loop(a));
  order.insert(order.end(), {m + ".0", n + ".0", m + ".1", n + ".1", m + ".4", n + ".3"});
  for (const int r : axes.other_reduce) order.push_back(loop(r));
  order.push_back(k + ".0");
  if (steps) order.push_back(k + ".1");
  order.insert(order.end(),
               {m + ".2", n + ".2", m + ".3", n + ".4", fmt::format("{}.{}", k, steps ? 2 : 1)});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  const bool along_z =
      axes.batches > 1 && axes.batches * Parts(axes.rows, tile.block_rows()) > kMostBlocksY;
  const int fused = BindBlocks(w, id, axes, along_z);
  const std::string warp = fmt::format("{}.f{}", stage.name, fused),
                    lane = fmt::format("{}.f{}", stage.name, fused + 1);
  w.Emit(fmt::format("{} = fuse({}.1, {}.1)", warp, m, n));
  w.Emit(fmt::format("{} = fuse({}.4, {}.3)", lane, m, n));
  w.Emit(fmt::format("bind({}, thread.y)", warp));
  w.Emit(fmt::format("bind({}, thread.x)", lane));
  w.Emit(fmt::format("{} = cache_write({}, register, at={}{})", w.NextStage(), stage.name, lane,
                     tile.through ? ", through=shared" : ""));
  if (steps) w.Emit(fmt::format("unroll({}.1)", k));
  w.Emit(fmt::format("unroll({}.2)", m));
  w.Emit(fmt::format("unroll({}.2)", n));
  w.Emit(fmt::format("tensorize({}.3, mma)", m));
  w.Emit(fmt::format("vectorize({}.4)", n));
  // Rows along what lies side by side in memory; how they are fetched follows from that.
  const int64_t chunk = kChunkBytes / axes.number_bytes;
  const auto copy = [&](int tensor, int length, bool by_depth, int64_t run) {
    CopySlice(w, id, k + ".0",
              {.tensor = tensor,
               .outer = by_depth ? length : axes.reduce,
               .inner = by_depth ? axes.reduce : length,
               .along_inner = true,
               .lanes = run * axes.number_bytes < 4 ? chunk : std::min(chunk, run),
               .row_gap = chunk},
              tile.warps(), ir::kMmaLanes);
  };
  // Pieces of which a copy brings all or none.
  copy(axes.first, axes.row, axes.first_by_depth, axes.first_run);
  copy(axes.second, axes.column, axes.second_by_depth, axes.second_run);
  if (tile.stages > 1) w.Emit(fmt::format("pipeline({}.0, {})", k, tile.stages));
}

std::optional<WarpTile> ReadWarpTile(const Trace& trace, const std::string& stage) {
  std::vector<int64_t> rows, columns, depth;
  WarpTile tile;
  const Instruction* const sums = FindInstruction(trace, "cache_write", stage);
  tile.through = sums != nullptr && sums->named.size() > 1;
  for (const Instruction& i : trace.instructions) {
    if (i.positional.empty() || !i.positional[0].starts_with(stage + ".")) continue;
    if (i.primitive == "pipeline") tile.stages = std::strtoll(i.positional[1].c_str(), nullptr, 10);
    if (i.primitive != "split") continue;
    const std::vector<int64_t> factors = FactorsOf(trace, i.positional[0]);
    if (i.positional[0].starts_with(stage + ".r"))
      depth = factors;
    else
      (rows.empty() ? rows : columns) = factors;
  }
  if (rows.size() != 4 || columns.size() != 4 || depth.empty()) return std::nullopt;
  tile.warps_y = rows[0];
  tile.rows = rows[1];
  tile.warps_x = columns[0];
  tile.columns = columns[1];
  tile.depth = 1;
  for (const int64_t factor : depth) tile.depth *= factor;
  return tile;
}

}  // namespace hone::schedule
