#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "ir/cpu/cpu_target.h"
#include "ir/index/simplify.h"
#include "schedule/cpu/panels.h"
#include "schedule/cpu/rules.h"
#include "schedule/trace_query.h"

// Contractions (matrix products, convolutions as implicit products) and windows (depthwise,
// pooling, column sums): a tile of rows × vectors of the result accumulates in registers while the
// reduce loops run.
namespace hone::schedule {

namespace {

/// Vectors of columns for which it pays to widen bytes once more in memory.
constexpr int64_t kManyVectors = 8;
/// Taps of a window above which they are not unrolled; a pair of value and index is several
/// registers and more than ten instructions a step.
constexpr int64_t kMostTaps = 25, kMostTapsOfTuples = 9;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::string Loop(const TraceWriter& w, int stage, int axis) {
  const int spatial = w.stage(stage).num_spatial();
  return axis < spatial ? fmt::format("{}.i{}", w.name(stage), axis)
                        : fmt::format("{}.r{}", w.name(stage), axis - spatial);
}

/// Axes (spatial and reduce) that stand in some guard of the Stage's body.
std::vector<bool> GuardedAxes(const ir::Stage& stage) {
  std::vector<bool> out(stage.num_axes(), false);
  for (const auto& body : stage.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      if (e.kind != ir::ExprKind::kSelect) return;
      for (int a = 0; a < stage.num_axes(); ++a) out[a] = out[a] || ir::DependsOnVar(e.args[0], a);
    });
  }
  return out;
}

/// A guard joins a row axis with these reduce axes (padding along the row).
std::vector<int> ReduceAxesGuardedWith(const ir::Stage& stage, int axis) {
  std::vector<int> out;
  for (const auto& body : stage.body) {
    ir::Visit(body, [&](const ir::ExprNode& e) {
      if (e.kind != ir::ExprKind::kSelect) return;
      std::vector<ir::Expr> conjuncts;
      ir::SplitConjunction(e.args[0], &conjuncts);
      for (const auto& c : conjuncts) {
        if (!ir::DependsOnVar(c, axis)) continue;
        for (int r = stage.num_spatial(); r < stage.num_axes(); ++r) {
          if (ir::DependsOnVar(c, r) && std::find(out.begin(), out.end(), r) == out.end())
            out.push_back(r);
        }
      }
    });
  }
  return out;
}

/// Loop order of the reduction: axes by the largest stride of any load, so that the innermost walks
/// memory in order.
std::vector<int> ReduceOrder(const ir::Workload& w, const ir::Stage& stage) {
  std::vector<std::pair<int64_t, int>> keyed;
  std::vector<Access> accesses = AccessesOf(w, stage);
  for (int r = stage.num_spatial(); r < stage.num_axes(); ++r) {
    int64_t stride = 0;
    for (const auto& a : accesses) {
      if (w.tensors[a.tensor].kind == ir::TensorKind::kConstant) continue;
      stride = std::max(stride, a.linear[r] ? std::abs(a.stride[r]) : int64_t{1} << 40);
    }
    keyed.emplace_back(-stride, r);
  }
  std::stable_sort(keyed.begin(), keyed.end());
  std::vector<int> out;
  for (const auto& [key, r] : keyed) out.push_back(r);
  return out;
}

/// Whether the steps of the innermost reduce axis take parts of one byte each: unrolled, they share
/// what is loaded.
bool SharesBytes(const ir::Workload& w, const ir::Stage& stage, const std::vector<Access>& accesses,
                 const TileForm& f) {
  constexpr int64_t kBitsOfByte = 8;
  if (f.reduce.empty() || f.vector_axis < 0 || stage.Extent(f.reduce.back()) > kBitsOfByte)
    return false;
  return std::ranges::find(f.unrolled, f.reduce.back()) == f.unrolled.end() &&
         std::ranges::any_of(accesses, [&](const Access& a) {
           return ir::SizeOf(w.tensors[a.tensor].dtype) == 1 && a.DependsOn(f.vector_axis) &&
                  !a.DependsOn(f.reduce.back());
         });
}

/// The row axis. Contraction: the innermost other axis along which some load that moves with the
/// vectors is reused. Window: the innermost along which the window slides, else the innermost.
int FindRowAxis(const ir::Stage& stage, const std::vector<Access>& accesses, int vector_axis,
                bool contraction) {
  int innermost = -1;
  for (int a = stage.num_spatial(); a-- > 0;) {
    if (a == vector_axis || stage.spatial[a] == 1) continue;
    if (innermost < 0) innermost = a;
    for (const auto& x : accesses) {
      if (contraction && vector_axis >= 0 && x.DependsOn(vector_axis) && !x.DependsOn(a)) return a;
      for (const auto& index : x.indices) {
        bool slides = false;
        for (int r = stage.num_spatial(); r < stage.num_axes(); ++r)
          slides |= ir::DependsOnVar(index, a) && ir::DependsOnVar(index, r);
        if (slides && !contraction) return a;
      }
    }
  }
  return contraction ? -1 : innermost;
}

}  // namespace

int LanesFor(ir::DType dtype, const ir::Target& target) {
  int64_t bytes = std::max<int64_t>(ir::SizeOf(dtype),
                                    dtype == ir::DType::kF16 || dtype == ir::DType::kBF16 ? 4 : 1);
  return static_cast<int>(std::min<int64_t>(target.As<ir::CpuTarget>().lanes * 4 / bytes, 64));
}

TileForm FindTileForm(const TraceWriter& writer, const Cluster& cluster, const ir::Target& target) {
  const ir::Workload& w = writer.workload();
  TileForm f;
  f.owner = cluster.owner;
  f.anchor = cluster.anchor;
  const ir::Stage& stage = w.stages[f.anchor];
  f.vector_axis = VectorAxis(w, stage);
  const ir::DType dtype = w.tensors[stage.results[0]].dtype;
  f.lanes = LanesFor(dtype, target);
  const bool tuple = ir::IsTuple(stage.combiner);
  if (tuple) {
    const auto bytes = [&](size_t k) { return ir::SizeOf(w.tensors[stage.results[k]].dtype); };
    f.registers = CeilDiv(f.lanes * (bytes(0) + bytes(1)), target.As<ir::CpuTarget>().lanes * 4);
  }
  std::vector<Access> accesses = AccessesOf(w, stage);
  const bool contraction = RoleOf(w, stage) == Role::kContraction;
  f.row_axis = FindRowAxis(stage, accesses, f.vector_axis, contraction);
  for (int a = 0; a < stage.num_spatial(); ++a) {
    if (a != f.vector_axis && a != f.row_axis) f.outer.push_back(a);
  }
  f.reduce = ReduceOrder(w, stage);
  if (f.row_axis >= 0) {
    f.unrolled = ReduceAxesGuardedWith(stage, f.row_axis);
    f.border = GuardedAxes(stage)[f.row_axis];
    f.rows_total = stage.spatial[f.row_axis];
    for (const auto& a : accesses) {
      if (a.DependsOn(f.row_axis)) f.row_block = std::max(f.row_block, a.block[f.row_axis]);
    }
    if (f.rows_total % f.row_block != 0) f.row_block = 1;
  }
  int64_t taps = 1;
  for (int r : f.unrolled) taps *= stage.Extent(r);
  if (!contraction) {
    // A window's taps are unrolled too, so that neighbouring outputs share what they load.
    for (size_t k = f.reduce.size(); k-- > 0;) {
      int r = f.reduce[k];
      if (std::find(f.unrolled.begin(), f.unrolled.end(), r) != f.unrolled.end()) continue;
      if (taps * stage.Extent(r) > (tuple ? kMostTapsOfTuples : kMostTaps)) continue;
      taps *= stage.Extent(r);
      f.unrolled.push_back(r);
    }
  } else if (taps > 16) {
    f.unrolled.clear();
    f.border = false;
  }
  if (contraction && SharesBytes(w, stage, accesses, f)) f.unrolled.push_back(f.reduce.back());
  if (f.vector_axis >= 0) {
    for (const auto& a : accesses) {
      if (a.DependsOn(f.vector_axis) && a.SharedAlong(f.vector_axis))
        f.shared_block = std::gcd(f.shared_block, a.block[f.vector_axis]);
    }
    // A group of 8 channels: half a register's lanes, which beats gathering what every lane needs.
    f.lanes = static_cast<int>(std::gcd<int64_t>(f.lanes, f.shared_block));
    f.vectors_total = CeilDiv(stage.spatial[f.vector_axis], f.lanes);
    if (contraction) f.dot = DotOf(w, stage, accesses, f, target);
    f.pairs = f.dot == 2 && dtype == ir::DType::kI32 && !target.As<ir::CpuTarget>().vnni;
    for (const auto& a : accesses) {
      const bool panels = f.dot > 1 && !a.SharedAlong(f.vector_axis);
      if ((panels || NeedsPacking(w, a, f.vector_axis, stage.spatial[f.vector_axis])) &&
          std::find(f.packed.begin(), f.packed.end(), a.tensor) == f.packed.end()) {
        f.packed.push_back(a.tensor);
      }
      if (f.pairs && f.vectors_total >= kManyVectors && a.SharedAlong(f.vector_axis))
        f.widened = a.tensor;
    }
    if (std::ranges::count(f.packed, f.widened) > 0) f.widened = -1;
  }
  return f;
}

namespace {

/// Loops of the owner outside the tile, in order, with their extents.
struct OuterLoops {
  std::vector<std::string> names;
  std::vector<int64_t> extents;
};

OuterLoops OrderOuter(const TraceWriter& w, const TileForm& f, const TileChoice& c,
                      const ir::Target& target) {
  const ir::Stage& owner = w.stage(f.owner);
  OuterLoops rows, columns, all;
  for (int a : f.outer)
    rows.names.push_back(Loop(w, f.owner, a)), rows.extents.push_back(owner.spatial[a]);
  const int64_t row_blocks = RowBlocks(owner, f, c, target);
  if (row_blocks > 1) {
    rows.names.push_back(Loop(w, f.owner, f.row_axis) + ".0");
    rows.extents.push_back(row_blocks);
  }
  columns.names.push_back(Loop(w, f.owner, f.vector_axis) + ".0");
  columns.extents.push_back(CeilDiv(f.vectors_total, c.vectors));
  const OuterLoops& first = c.order == TileChoice::Order::kRowsOutside ? rows : columns;
  const OuterLoops& second = c.order == TileChoice::Order::kRowsOutside ? columns : rows;
  for (const auto* part : {&first, &second}) {
    all.names.insert(all.names.end(), part->names.begin(), part->names.end());
    all.extents.insert(all.extents.end(), part->extents.begin(), part->extents.end());
  }
  if (row_blocks == TileChoice::kTiles) {
    all.names.insert(all.names.begin(), Loop(w, f.owner, f.row_axis) + ".0");
    all.extents.insert(all.extents.begin(), CeilDiv(f.rows_total, c.rows));
  }
  if (row_blocks > 1) {
    const auto at = std::find(all.names.begin(), all.names.end(), rows.names.back());
    std::swap(all.extents[static_cast<size_t>(at - all.names.begin())], all.extents.front());
    std::swap(*at, all.names.front());
  }
  return all;
}

/// Splits what one instruction takes from the innermost reduce loop; gives the loop around it.
std::string SplitDot(TraceWriter& w, const TileForm& f, int stage) {
  const std::string inner = Loop(w, stage, f.reduce.back());
  w.Emit(fmt::format("split({}, {})", inner, f.dot));
  return inner + ".0";
}

/// The loop of what one instruction takes.
std::string DotLoop(const TraceWriter& w, const TileForm& f, int stage, bool blocks) {
  return fmt::format("{}.{}", Loop(w, stage, f.reduce.back()), blocks ? 2 : 1);
}

/// Appends the owner's reduce loops to `order`, whose first `outer` loops stand outside the tile.
/// Blocks of the reduction go outside the rows: the panel's block stays in cache while all rows
/// pass.
void OrderReduce(TraceWriter& w, const TileForm& f, const TileChoice& c, size_t outer,
                 const std::string& row, std::vector<std::string>* order) {
  for (int r : f.reduce) order->push_back(Loop(w, f.owner, r));
  if (c.reduce_block <= 0) {
    if (f.dot > 1) order->back() = SplitDot(w, f, f.owner);
    return;
  }
  const std::string inner = order->back();
  if (f.dot > 1)
    w.Emit(fmt::format("split({}, [{}, {}])", inner, c.reduce_block / f.dot, f.dot));
  else
    w.Emit(fmt::format("split({}, {}, mask)", inner, c.reduce_block));
  order->back() = inner + ".1";
  order->insert(row.empty() ? order->begin() + static_cast<std::ptrdiff_t>(outer)
                            : std::find(order->begin(), order->end(), row + ".0"),
                inner + ".0");
}

}  // namespace

void ScheduleTileLoops(TraceWriter& w, const TileForm& f) {
  std::vector<std::string> order;
  if (f.vector_axis >= 0)
    w.Emit(fmt::format("split({}, {})", Loop(w, f.anchor, f.vector_axis), f.lanes));
  for (int r : f.reduce) order.push_back(Loop(w, f.anchor, r));
  if (f.dot > 1) order.back() = SplitDot(w, f, f.anchor);
  for (int a : f.outer) order.push_back(Loop(w, f.anchor, a));
  if (f.row_axis >= 0) order.push_back(Loop(w, f.anchor, f.row_axis));
  if (f.vector_axis >= 0) {
    order.push_back(Loop(w, f.anchor, f.vector_axis) + ".0");
    order.push_back(Loop(w, f.anchor, f.vector_axis) + ".1");
  }
  if (f.dot > 1) order.push_back(DotLoop(w, f, f.anchor, false));
  if (order.size() > 1) w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  for (int r : f.unrolled) w.Emit(fmt::format("unroll({})", Loop(w, f.anchor, r)));
  if (f.row_axis >= 0) w.Emit(fmt::format("unroll({})", Loop(w, f.anchor, f.row_axis)));
  if (f.vector_axis >= 0) {
    w.Emit(fmt::format("unroll({}.0)", Loop(w, f.anchor, f.vector_axis)));
    w.Emit(fmt::format("vectorize({}.1)", Loop(w, f.anchor, f.vector_axis)));
  }
  if (f.dot > 1) w.Emit(fmt::format("tensorize({}, dot)", DotLoop(w, f, f.anchor, false)));
}

void ScheduleAnchorInside(TraceWriter& w, const TileForm& f, const std::string& tile_loop) {
  w.Emit(fmt::format("compute_at({}, {}, {})", w.name(f.anchor), tile_loop,
                     f.tile_groups > 0 ? "memory" : "register"));
  if (f.tile_groups > 0)
    ScheduleTileProduct(w, f);
  else
    ScheduleTileLoops(w, f);
}

void ScheduleTileInside(TraceWriter& w, const TileForm& f, const TileChoice& c, Padding padding) {
  const ir::Stage owner = w.stage(f.owner);
  const bool own = f.owner == f.anchor;
  const int64_t panel = c.vectors * f.lanes;
  const std::string v = Loop(w, f.owner, f.vector_axis);
  w.Emit(fmt::format("split({}, [{}, {}]{})", v, c.vectors, f.lanes,
                     owner.spatial[f.vector_axis] % panel == 0 ? "" : ", mask"));
  std::vector<std::string> order;
  for (int a : f.outer) order.push_back(Loop(w, f.owner, a));
  order.push_back(v + ".0");
  std::string row;
  if (f.row_axis >= 0) {
    row = Loop(w, f.owner, f.row_axis);
    w.Emit(fmt::format("split({}, {}, two_sizes)", row, c.rows));
    if (f.border && padding == Padding::kPeeled)
      w.Emit(fmt::format("partition({}.0, [1, -1])", row));
    order.push_back(row + ".0");
  }
  const std::string tile_loop = order.back();
  if (own) OrderReduce(w, f, {}, order.size(), row, &order);
  if (!row.empty()) order.push_back(row + ".1");
  order.push_back(v + ".1");
  order.push_back(v + ".2");
  const bool dot = own && f.dot > 1;
  if (dot) order.push_back(DotLoop(w, f, f.owner, false));
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  if (own) {
    w.Emit(fmt::format("{} = cache_write({}, register, at={})", w.NextStage(), w.name(f.anchor),
                       tile_loop));
  }
  if (!row.empty()) w.Emit(fmt::format("unroll({}.1)", row));
  w.Emit(fmt::format("unroll({}.1)", v));
  w.Emit(fmt::format("vectorize({}.2)", v));
  if (dot) w.Emit(fmt::format("tensorize({}, dot)", order.back()));
  if (own) {
    for (int r : f.unrolled) w.Emit(fmt::format("unroll({})", Loop(w, f.owner, r)));
  } else {
    ScheduleAnchorInside(w, f, tile_loop);
  }
}

namespace {

/// Splits the owner's rows into as many blocks and these into tiles; gives the loop that was split
/// into tiles.
std::string SplitRows(TraceWriter& w, const TileForm& f, const TileChoice& c, int64_t blocks) {
  std::string row = Loop(w, f.owner, f.row_axis);
  if (blocks > 1) {
    w.Emit(fmt::format("split({}, {})", row, f.rows_total / blocks));
    row += ".1";
  }
  w.Emit(fmt::format("split({}, {}, two_sizes)", row, c.rows));
  return row;
}

ParallelLoop ShareOuter(TraceWriter& w, const TileForm& f, const OuterLoops& outer, int64_t blocks,
                        const ir::Target& target) {
  return blocks == TileChoice::kTiles ? ParalleliseAll(w, f.owner, outer.names, target)
                                      : Parallelise(w, f.owner, outer.names, outer.extents, target);
}

/// Sums of tiles where the result lies: no copy of them is needed.
void ScheduleTilesInPlace(TraceWriter& w, const TileForm& f, const TileChoice& c,
                          const ir::Target& target) {
  PackPanels(w, f, c.vectors * f.lanes, target);
  const OuterLoops outer = OrderOuter(w, f, c, target);
  const std::string v = Loop(w, f.owner, f.vector_axis);
  w.Emit(fmt::format("split({}, [{}, {}])", v, c.vectors, f.lanes));
  const int64_t blocks = RowBlocks(w.stage(f.owner), f, c, target);
  const std::string row = SplitRows(w, f, c, blocks);
  std::vector<std::string> order = outer.names;
  if (blocks != TileChoice::kTiles) order.push_back(row + ".0");
  OrderTileProduct(w, f, f.owner, row + ".1", v + ".1", v + ".2", &order);
  ShareOuter(w, f, outer, blocks, target);
}

}  // namespace

void ScheduleTile(TraceWriter& w, const TileForm& f, const TileChoice& c, Padding padding,
                  const ir::Target& target) {
  if (f.tile_groups > 0 && f.owner == f.anchor) return ScheduleTilesInPlace(w, f, c, target);
  const ir::Stage owner = w.stage(f.owner);
  const std::string anchor = w.name(f.anchor);
  const std::string o = w.name(f.owner);
  const bool own = f.owner == f.anchor;
  if (f.vector_axis < 0) return;
  const int64_t panel = c.vectors * f.lanes;
  const bool ahead =
      c.order == TileChoice::Order::kColumnsAhead && HasPanelsToFetch(w.workload(), f);
  const std::string panels = w.NextStage();
  PackPanels(w, f, panel, target);
  if (padding != Padding::kTile) WidenShared(w, f, target);
  const std::string v = Loop(w, f.owner, f.vector_axis);
  const bool whole_vectors = owner.spatial[f.vector_axis] % panel == 0;
  w.Emit(
      fmt::format("split({}, [{}, {}]{})", v, c.vectors, f.lanes, whole_vectors ? "" : ", mask"));
  std::string row;
  const OuterLoops outer = OrderOuter(w, f, c, target);
  const int64_t blocks = RowBlocks(owner, f, c, target);
  const bool tiles = blocks == TileChoice::kTiles;
  if (f.row_axis >= 0) row = SplitRows(w, f, c, blocks);
  std::vector<std::string> order = outer.names;
  std::string tile_loop = outer.names.back();
  if (!row.empty()) {
    if (!tiles) order.push_back(row + ".0");
    tile_loop = row + ".0";
    if (f.border && padding == Padding::kPeeled)
      w.Emit(fmt::format("partition({}.0, [1, -1])", row));
  }
  if (own) OrderReduce(w, f, c, outer.names.size(), row, &order);
  if (!row.empty()) order.push_back(row + ".1");
  order.push_back(v + ".1");
  order.push_back(v + ".2");
  const bool dot = own && f.dot > 1;
  if (dot) order.push_back(DotLoop(w, f, f.owner, c.reduce_block > 0));
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  const ParallelLoop parallel = ShareOuter(w, f, outer, blocks, target);
  if (tiles || (row.empty() && parallel.consumed == outer.names.size())) tile_loop = parallel.name;
  if (own)
    w.Emit(fmt::format("{} = cache_write({}, register, at={})", w.NextStage(), anchor, tile_loop));
  // Sums of tiles come from memory: rows may follow each other.
  if (!row.empty() && f.tile_groups == 0) w.Emit(fmt::format("unroll({}.1)", row));
  w.Emit(fmt::format("unroll({}.1)", v));
  w.Emit(fmt::format("vectorize({}.2)", v));
  if (dot) w.Emit(fmt::format("tensorize({}, dot)", order.back()));
  if (own) {
    for (int r : f.unrolled) w.Emit(fmt::format("unroll({})", Loop(w, f.owner, r)));
  } else {
    ScheduleAnchorInside(w, f, tile_loop);
  }
  if (ahead) FetchPanelsAhead(w, f, c, panels);
}

std::optional<TileChoice> ReadTile(const TraceWriter& w, const TileForm& f,
                                   const ir::Target& target, const Trace& trace) {
  if (f.vector_axis < 0) return std::nullopt;
  TileChoice c;
  const std::vector<int64_t> panel = FactorsOf(trace, Loop(w, f.owner, f.vector_axis));
  if (panel.size() != 2) return std::nullopt;
  c.vectors = panel[0];
  if (f.row_axis >= 0) {
    const std::string row = Loop(w, f.owner, f.row_axis);
    const std::vector<int64_t> first = FactorsOf(trace, row);
    std::vector<int64_t> rows = FactorsOf(trace, row + ".1");
    if (first.size() != 1 || first[0] < 1) return std::nullopt;
    // Blocks of rows that are tiles are cut into these last.
    if (f.tile_groups > 0 && f.owner == f.anchor && FactorsOf(trace, row + ".1.1").empty())
      rows.clear();
    c.row_blocks = rows.empty() ? 1 : f.rows_total / first[0];
    if (rows.empty()) rows = first;
    if (rows.size() != 1) return std::nullopt;
    c.rows = rows[0];
  }
  if (f.owner == f.anchor && !f.reduce.empty()) {
    const std::vector<int64_t> block = FactorsOf(trace, Loop(w, f.owner, f.reduce.back()));
    if (f.dot == 1 && !block.empty()) c.reduce_block = block[0];
    if (f.dot > 1 && block.size() == 2) c.reduce_block = block[0] * f.dot;
  }
  const std::vector<std::string> loops = OrderOf(trace, w.name(f.owner));
  if (c.row_blocks == 1 && !loops.empty() && loops[0] == Loop(w, f.owner, f.row_axis) + ".0")
    c.row_blocks = TileChoice::kTiles;
  TileChoice columns = c;
  columns.order = TileChoice::Order::kColumnsOutside;
  const auto stands = [&](const TileChoice& choice) {
    const OuterLoops outer = OrderOuter(w, f, choice, target);
    return outer.names.size() <= loops.size() &&
           std::equal(outer.names.begin(), outer.names.end(), loops.begin());
  };
  if (stands(c) || !stands(columns)) return c;
  const bool ahead = std::ranges::any_of(trace.instructions, [](const Instruction& i) {
    return i.primitive == "prefetch" && i.positional.size() == 4;
  });
  if (ahead) columns.order = TileChoice::Order::kColumnsAhead;
  return columns;
}

}  // namespace hone::schedule
