#include "schedule/cuda/window_tile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "schedule/access.h"
#include "schedule/cuda/slice.h"
#include "schedule/trace_query.h"

namespace hone::schedule {

namespace {

constexpr int64_t kWarp = 32, kMostThreads = 1024, kMostSums = 64;
/// What a block takes by default, so that code for a chip runs on every later one.
constexpr int64_t kNominalSharedBytes = 48 << 10, kNominalThreads = 128;
constexpr int64_t kMostBlocks = int64_t{1} << 30;
/// Steps of a copy, and iterations of the window, that are written one after the other.
constexpr int64_t kMostUnrolled = 32;

int64_t Parts(int64_t whole, int64_t part) { return (whole + part - 1) / part; }

/// More than half of the threads along an axis would have nothing to do.
bool Wastes(int64_t there, int64_t tile, int64_t least) {
  return tile > least && tile >= 2 * there;
}

/// Writes the loops of one window.
class WindowWriter {
 public:
  WindowWriter(TraceWriter& w, const Window& window, const WindowTile& tile)
      : w_(w), stage_(w.stage(window.stage)), window_(window), axes_(window.axes), tile_(tile) {}

  void Write() {
    const std::string fast = Loop(axes_.fast), near = Loop(axes_.near);
    w_.Emit(fmt::format("split({}, [{}, {}], mask)", near, tile_.threads_y, tile_.columns));
    const bool vectors = axes_.lanes > 1;
    w_.Emit(vectors ? fmt::format("split({}, [{}, {}], mask)", fast, tile_.threads_x, axes_.lanes)
                    : fmt::format("split({}, {}, mask)", fast, tile_.threads_x));
    std::vector<std::string> grid;
    for (const int a : axes_.others) grid.push_back(Loop(a));
    std::vector<std::string> inside;
    if (axes_.far >= 0) {
      w_.Emit(fmt::format("split({}, {}, mask)", Loop(axes_.far), tile_.rows));
      grid.push_back(Loop(axes_.far) + ".0");
      inside.push_back(Loop(axes_.far) + ".1");
    }
    grid.insert(grid.end(), {near + ".0", fast + ".0"});
    inside.push_back(near + ".2");
    std::vector<std::string> order = grid;
    order.insert(order.end(), {near + ".1", fast + ".1"});
    for (int r = stage_.num_spatial(); r < stage_.num_axes(); ++r) order.push_back(Loop(r));
    order.insert(order.end(), inside.begin(), inside.end());
    if (vectors) order.push_back(fast + ".2");
    w_.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
    Fuse(stage_.name, grid);
    w_.Emit(fmt::format("bind({}.f{}, block.x)", stage_.name, grid.size() - 2));
    w_.Emit(fmt::format("bind({}.1, thread.y)", near));
    w_.Emit(fmt::format("bind({}.1, thread.x)", fast));
    w_.Emit(
        fmt::format("{} = cache_write({}, register, at={}.1)", w_.NextStage(), stage_.name, fast));
    UnrollWindow();
    for (const std::string& loop : inside) w_.Emit(fmt::format("unroll({})", loop));
    if (vectors) w_.Emit(fmt::format("vectorize({}.2)", fast));
    Bring(fast + ".1");
  }

 private:
  std::string Loop(int axis) const { return LoopOfAxis(stage_.name, stage_.num_spatial(), axis); }

  /// Names of neighbouring loops, which become one.
  std::string Fuse(const std::string& stage, const std::vector<std::string>& loops) {
    std::string all = loops[0];
    for (size_t k = 1; k < loops.size(); ++k) {
      const std::string fused = fmt::format("{}.f{}", stage, k - 1);
      w_.Emit(fmt::format("{} = fuse({}, {})", fused, all, loops[k]));
      all = fused;
    }
    return all;
  }

  void UnrollWindow() {
    int64_t points = 1;
    for (int r = stage_.num_axes(); r-- > stage_.num_spatial();) {
      points *= stage_.Extent(r);
      if (points > kMostUnrolled) return;
      if (stage_.Extent(r) > 1) w_.Emit(fmt::format("unroll({})", Loop(r)));
    }
  }

  /// What the block reads, by all of its threads: neighbours along what lies side by side in memory
  /// by neighbours.
  void Bring(const std::string& at) {
    std::string copy;
    if (window_.input >= 0) {
      copy = w_.name(window_.input);
      w_.Emit(fmt::format("compute_at({}, {}, shared)", copy, at));
    } else {
      copy = w_.NextStage();
      w_.Emit(fmt::format("{} = cache_read({}, {}, at={}, storage=shared)", copy, stage_.name,
                          w_.workload().tensors[axes_.tensor].name, at));
    }
    const int rank = static_cast<int>(axes_.dimensions.size());
    const int along = w_.workload().FindStage(copy) < 0 ? rank - 1 : SourceAxis(copy, rank);
    std::vector<std::string> rows;
    int64_t lines = 1;
    for (int d = 0; d < rank; ++d) {
      if (d == along) continue;
      rows.push_back(fmt::format("{}.i{}", copy, d));
      const WindowAxes::Dimension& of = axes_.dimensions[static_cast<size_t>(d)];
      lines *= of.Width(tile_.Points(axes_, of.axis));
    }
    const std::string element = fmt::format("{}.i{}", copy, along);
    // The last dimension of the tile is that of the fast axis: only along it whole vectors stand.
    const bool vectors = axes_.lanes > 1 && along + 1 == rank;
    w_.Emit(vectors
                ? fmt::format("split({}, [{}, {}], mask)", element, tile_.threads_x, axes_.lanes)
                : fmt::format("split({}, {}, mask)", element, tile_.threads_x));
    if (along + 1 < rank) {
      std::vector<std::string> order = rows;
      order.insert(order.end(), {element + ".0", element + ".1"});
      w_.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
    }
    const std::string row = Fuse(copy, rows);
    w_.Emit(fmt::format("split({}, {}, mask)", row, tile_.threads_y));
    w_.Emit(fmt::format("reorder({0}.0, {1}.0, {0}.1, {1}.1)", row, element));
    w_.Emit(fmt::format("bind({}.1, thread.y)", row));
    w_.Emit(fmt::format("bind({}.1, thread.x)", element));
    // All loads are on their way before the first is stored.
    if (Parts(lines, tile_.threads_y) <= kMostUnrolled) w_.Emit(fmt::format("unroll({}.0)", row));
    if (vectors) w_.Emit(fmt::format("vectorize({}.2)", element));
  }

  /// The axis of the copy along which what it reads lies side by side.
  int SourceAxis(const std::string& copy, int rank) const {
    const ir::Workload& workload = w_.workload();
    const ir::Stage& stage = workload.stages[workload.FindStage(copy)];
    for (const Access& access : AccessesOf(workload, stage)) {
      for (int d = rank; d-- > 0;) {
        if (access.linear[d] && access.stride[d] == 1 && stage.spatial[d] > 1) return d;
      }
    }
    return rank - 1;
  }

  TraceWriter& w_;
  const ir::Stage stage_;
  const Window& window_;
  const WindowAxes& axes_;
  const WindowTile& tile_;
};

}  // namespace

int64_t WindowAxes::Dimension::Width(int64_t points) const {
  const bool whole = points % group == 0 || group % points == 0;
  return ((points - 1) / group + (whole ? 0 : 1)) * step + reach;
}

int64_t WindowTile::Points(const WindowAxes& axes, int axis) const {
  if (axis < 0) return 1;
  return axis == axes.fast   ? threads_x * axes.lanes
         : axis == axes.near ? threads_y * columns
         : axis == axes.far  ? rows
                             : 1;
}

int64_t WindowTile::blocks(const WindowAxes& axes) const {
  return axes.batches * Parts(axes.fast_extent, threads_x * axes.lanes) *
         Parts(axes.near_extent, threads_y * columns) * Parts(axes.far_extent, rows);
}

int64_t WindowTile::halo(const WindowAxes& axes) const {
  int64_t elements = 1;
  for (const WindowAxes::Dimension& d : axes.dimensions) elements *= d.Width(Points(axes, d.axis));
  return elements;
}

int64_t WindowTile::shared_bytes(const WindowAxes& axes) const {
  return axes.number_bytes * halo(axes);
}

std::string_view WindowTile::Misfit(const WindowAxes& axes, int64_t most_shared_bytes) const {
  if (threads() > kMostThreads) return "too many threads";
  if (threads() < kWarp) return "less than a warp";
  if (rows > 1 && axes.far < 0) return "no second axis slides";
  if (rows * columns * axes.lanes > kMostSums) return "too many registers";
  if (Wastes(axes.fast_extent, threads_x * axes.lanes, 4 * axes.lanes) ||
      Wastes(axes.near_extent, threads_y * columns, 1) || Wastes(axes.far_extent, rows, 1))
    return "half of the block has nothing to do";
  if (blocks(axes) > kMostBlocks) return "more blocks than a grid has";
  if (shared_bytes(axes) > most_shared_bytes)
    return "what a block reads is larger than its shared memory";
  return {};
}

const std::vector<WindowThreads>& WindowBlocks() {
  static const std::vector<WindowThreads> blocks = {{4, 8},   {4, 16}, {4, 32}, {8, 4},  {8, 8},
                                                    {8, 16},  {8, 32}, {16, 2}, {16, 4}, {16, 8},
                                                    {16, 16}, {32, 1}, {32, 2}, {32, 4}, {32, 8}};
  return blocks;
}

std::optional<WindowTile> NominalWindow(const WindowAxes& axes, int64_t multiprocessors) {
  constexpr int64_t kOfAThread[][2] = {{2, 4}, {1, 4}, {2, 2}, {1, 2}, {2, 1}, {1, 1}};
  int64_t x = axes.lanes > 1 ? 8 : 32;
  while (x > 4 && x / 2 * axes.lanes >= axes.fast_extent) x /= 2;
  int64_t y = kNominalThreads / x;
  while (y > 1 && x * y > kWarp && y / 2 >= axes.near_extent) y /= 2;
  std::optional<WindowTile> best;
  for (; x * y >= kWarp && !best; y /= 2) {
    for (const auto& [columns, rows] : kOfAThread) {
      const WindowTile tile{x, y, columns, rows};
      if (!tile.Misfit(axes, kNominalSharedBytes).empty()) continue;
      if (!best || tile.blocks(axes) > best->blocks(axes)) best = tile;
      if (best->blocks(axes) >= multiprocessors) break;
    }
  }
  return best;
}

void ScheduleWindow(TraceWriter& writer, const Window& window, const WindowTile& tile) {
  WindowWriter(writer, window, tile).Write();
}

std::optional<WindowTile> ReadWindow(const Trace& trace, const std::string& stage,
                                     const WindowAxes& axes) {
  const auto factors = [&](int axis) {
    return FactorsOf(trace, fmt::format("{}.i{}", stage, axis));
  };
  const std::vector<int64_t> near = factors(axes.near), fast = factors(axes.fast);
  if (near.size() != 2 || fast.size() != (axes.lanes > 1 ? 2U : 1U)) return std::nullopt;
  WindowTile tile{fast[0], near[0], near[1], 1};
  if (axes.far >= 0) {
    const std::vector<int64_t> far = factors(axes.far);
    if (far.size() != 1) return std::nullopt;
    tile.rows = far[0];
  }
  return tile;
}

}  // namespace hone::schedule
