#include "schedule/cuda/tile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "schedule/access.h"
#include "schedule/structure.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

constexpr int64_t kLeastColumns = 16, kLeastRows = 4;
constexpr int64_t kDepths[] = {16, 8, 32, 4};
constexpr int64_t kMostBlocksY = 65'535;

/// Whether each index is an axis of its own.
bool IsPlain(const Access& access) {
  std::vector<int> seen;
  for (const ir::Expr& index : access.indices) {
    if (index->kind != ir::ExprKind::kVar) return false;
    if (std::ranges::find(seen, index->id) != seen.end()) return false;
    seen.push_back(index->id);
  }
  return !access.guarded;
}

/// The dimension of a load that an axis indexes.
int DimensionOf(const Access& access, int axis) {
  for (size_t d = 0; d < access.indices.size(); ++d) {
    if (access.indices[d]->id == axis) return static_cast<int>(d);
  }
  return -1;
}

Access AccessTo(const ir::Workload& workload, const ir::Stage& stage, int tensor) {
  for (Access& access : AccessesOf(workload, stage)) {
    if (access.tensor == tensor) return access;
  }
  return {};
}

std::string Loop(const std::string& stage, int spatial, int axis) {
  return axis < spatial ? fmt::format("{}.i{}", stage, axis)
                        : fmt::format("{}.r{}", stage, axis - spatial);
}

/// The slice of one factor, brought by all threads of the block: rows of `length` elements that lie
/// side by side. `padded`: another dimension's neighbours are read together, so rows of a power of
/// two would share a bank.
void CopySlice(TraceWriter& w, const std::string& stage, const std::string& at, int tensor,
               int other, int64_t length, bool padded, const BlockTile& tile) {
  const std::string name = w.workload().tensors[tensor].name;
  const auto last = static_cast<int>(w.workload().tensors[tensor].shape.size()) - 1;
  const std::string copy = w.NextStage();
  w.Emit(fmt::format("{} = cache_read({}, {}, at={}, storage=shared)", copy, stage, name, at));
  if (padded) w.Emit(fmt::format("align({}, {}, 1)", copy, last));
  const std::string row = fmt::format("{}.i{}", copy, other);
  w.Emit(fmt::format("split({}, {}, mask)", row, tile.threads_y));
  w.Emit(fmt::format("bind({}.1, thread.y)", row));
  const std::string element = fmt::format("{}.i{}", copy, last);
  const int64_t lanes =
      !padded && length % (tile.threads_x * BlockTile::kLanes) == 0 ? BlockTile::kLanes : 1;
  w.Emit(lanes > 1 ? fmt::format("split({}, [{}, {}], mask)", element, tile.threads_x, lanes)
                   : fmt::format("split({}, {}, mask)", element, tile.threads_x));
  w.Emit(fmt::format("bind({}.1, thread.x)", element));
  if (lanes > 1) w.Emit(fmt::format("vectorize({}.2)", element));
  // All loads are on their way before the first is stored.
  w.Emit(fmt::format("unroll({}.0)", row));
  w.Emit(fmt::format("unroll({}.0)", element));
}

}  // namespace

std::optional<ProductAxes> FindProduct(const ir::Workload& workload, const ir::Stage& stage) {
  if (stage.scan >= 0 || stage.num_spatial() < 2 || stage.num_reduce() == 0 ||
      stage.combiner != ir::Combiner::kSum || RoleOf(workload, stage) != Role::kContraction) {
    return std::nullopt;
  }
  const std::vector<Access> accesses = AccessesOf(workload, stage);
  if (accesses.size() != 2 || accesses[0].tensor == accesses[1].tensor ||
      !std::ranges::all_of(accesses, IsPlain)) {
    return std::nullopt;
  }
  for (const Access& access : accesses) {
    const ir::Tensor& tensor = workload.tensors[access.tensor];
    if (tensor.kind == ir::TensorKind::kImmediate || tensor.dtype != ir::DType::kF32)
      return std::nullopt;
  }
  ProductAxes axes;
  const int spatial = stage.num_spatial();
  axes.column = spatial - 1;
  const size_t second = accesses[0].DependsOn(axes.column) ? 0 : 1;
  const Access &x = accesses[1 - second], &y = accesses[second];
  if (x.DependsOn(axes.column) || !y.DependsOn(axes.column)) return std::nullopt;
  for (int a = 0; a + 1 < spatial; ++a) {
    const bool only_first = x.DependsOn(a) && !y.DependsOn(a);
    if (only_first && (axes.row < 0 || stage.spatial[a] > stage.spatial[axes.row])) axes.row = a;
  }
  for (int r = spatial; r < stage.num_axes(); ++r) {
    if (!x.DependsOn(r) || !y.DependsOn(r)) return std::nullopt;
    if (axes.reduce < 0 || stage.Extent(r) > stage.Extent(axes.reduce)) axes.reduce = r;
  }
  if (axes.row < 0) return std::nullopt;
  axes.first = x.tensor;
  axes.second = y.tensor;
  axes.rows = stage.spatial[axes.row];
  axes.columns = stage.spatial[axes.column];
  axes.depth = stage.Extent(axes.reduce);
  for (int a = 0; a + 1 < spatial; ++a) {
    if (a == axes.row) continue;
    axes.batch.push_back(a);
    axes.batches *= stage.spatial[a];
  }
  for (int r = spatial; r < stage.num_axes(); ++r) {
    if (r != axes.reduce) axes.other_reduce.push_back(r);
  }
  if (axes.rows < kLeastRows || axes.columns < kLeastColumns || axes.depth % 4 != 0)
    return std::nullopt;
  return axes;
}

const std::vector<BlockTile>& BlockTiles() {
  static const std::vector<BlockTile> tiles = {
      {16, 8, 16, 2, 0}, {16, 8, 16, 1, 0}, {8, 8, 16, 2, 0}, {16, 4, 16, 1, 0}, {8, 8, 8, 2, 0},
      {8, 4, 16, 1, 0},  {8, 4, 8, 1, 0},   {4, 4, 16, 1, 0}, {8, 2, 8, 1, 0},   {4, 4, 8, 1, 0}};
  return tiles;
}

int64_t BlocksOf(const ProductAxes& axes, const BlockTile& tile) {
  const auto parts = [](int64_t whole, int64_t part) { return (whole + part - 1) / part; };
  return axes.batches * parts(axes.rows, tile.block_rows()) *
         parts(axes.columns, tile.block_columns());
}

std::optional<BlockTile> NominalBlock(const ProductAxes& axes, const ir::CudaTarget& card) {
  std::optional<BlockTile> best;
  for (BlockTile tile : BlockTiles()) {
    const auto depth =
        std::ranges::find_if(kDepths, [&](int64_t d) { return axes.depth % d == 0; });
    if (depth == std::end(kDepths)) return std::nullopt;
    tile.depth = *depth;
    const int64_t blocks_y =
        axes.batches * ((axes.rows + tile.block_rows() - 1) / tile.block_rows());
    if (blocks_y > kMostBlocksY || tile.WastesRows(axes.rows)) continue;
    if (!best || BlocksOf(axes, tile) > BlocksOf(axes, *best)) best = tile;
    if (BlocksOf(axes, *best) >= card.multiprocessors) break;
  }
  return best;
}

void ScheduleProduct(TraceWriter& w, int id, const ProductAxes& axes, const BlockTile& tile) {
  const ir::Stage stage = w.stage(id);
  const int spatial = stage.num_spatial();
  const auto loop = [&](int axis) { return Loop(stage.name, spatial, axis); };
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
  std::string outer = axes.batch.empty() ? m + ".0" : loop(axes.batch[0]);
  for (size_t b = 1; b <= axes.batch.size(); ++b) {
    const std::string next = b < axes.batch.size() ? loop(axes.batch[b]) : m + ".0";
    const std::string fused = fmt::format("{}.f{}", stage.name, b - 1);
    w.Emit(fmt::format("{} = fuse({}, {})", fused, outer, next));
    outer = fused;
  }
  w.Emit(fmt::format("bind({}, block.y)", outer));
  w.Emit(fmt::format("bind({}.0, block.x)", n));
  w.Emit(fmt::format("bind({}.2, thread.y)", m));
  w.Emit(fmt::format("bind({}.2, thread.x)", n));
  w.Emit(fmt::format("{} = cache_write({}, register, at={}.2)", w.NextStage(), stage.name, n));
  w.Emit(fmt::format("unroll({}.1)", m));
  w.Emit(fmt::format("unroll({}.1)", n));
  w.Emit(fmt::format("vectorize({}.3)", n));
  const auto copy = [&](int tensor, int axis, int64_t block) {
    const Access access = AccessTo(w.workload(), stage, tensor);
    const int last = static_cast<int>(access.indices.size()) - 1;
    const int along = DimensionOf(access, axis), deep = DimensionOf(access, axes.reduce);
    const bool reduce_last = deep == last;
    // A tensor whose last dimension is neither is copied along that one.
    const int other = reduce_last ? along : deep;
    CopySlice(w, stage.name, k + ".0", tensor, other, reduce_last ? tile.depth : block,
              reduce_last && axis == axes.column, tile);
  };
  copy(axes.first, axes.row, tile.block_rows());
  copy(axes.second, axes.column, tile.block_columns());
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
  return BlockTile{rows[1], rows[0], columns[1], columns[0], depth[0]};
}

}  // namespace hone::schedule
