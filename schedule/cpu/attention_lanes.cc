#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/cpu/cpu_target.h"
#include "schedule/cpu/attention_nest.h"
#include "schedule/cpu/panels.h"
#include "schedule/nest_builder.h"

// Attention with the rows of queries in the lanes: scores lie [keys, rows], so that maxima, sums
// and exponentials are whole vectors that no shuffle folds, and only queries are turned.
namespace hone::schedule {

namespace {

constexpr int64_t kMostVectors = 4;
constexpr int64_t kLeastSums = 8;  ///< that hide the latency of a multiply-add

/// The axis of the exponentials along which the product's rows lie; -1: none alone.
int RowAxis(const AttentionForm& f, int query) {
  for (size_t d = 0; d < f.row.size(); ++d) {
    if (f.row[d]->kind == ir::ExprKind::kVar && f.row[d]->id == query) return static_cast<int>(d);
  }
  return -1;
}

/// Moves the axis to the end.
void PermuteLast(TraceWriter& w, int stage, int axis) {
  const int rank = w.stage(stage).num_spatial();
  if (axis == rank - 1) return;
  std::vector<std::string> order;
  for (int a = 0; a < rank; ++a) {
    if (a != axis) order.push_back(fmt::format("i{}", a));
  }
  order.push_back(fmt::format("i{}", axis));
  w.Emit(fmt::format("permute({}, [{}])", w.name(stage), fmt::join(order, ",")));
}

/// Whole vectors of the last axis wherever it has them.
void RoundLast(TraceWriter& w, int id, int lanes) {
  w.Emit(fmt::format("round({}, {}, {})", w.name(id), w.stage(id).num_spatial() - 1, lanes));
}

/// So many vectors of the last axis at a time, all others inside.
void GroupLanes(TraceWriter& w, int id, int64_t vectors, int lanes) {
  const ir::Stage stage = w.stage(id);
  const int last = stage.num_spatial() - 1;
  const std::string rows = AxisLoop(w, id, last);
  const char* tail = stage.spatial[last] % (vectors * lanes) == 0 ? "" : ", mask";
  w.Emit(fmt::format("split({}, [{}, {}]{})", rows, vectors, lanes, tail));
  const bool reduces = stage.combiner != ir::Combiner::kNone;
  std::vector<std::string> order;
  for (int a = 0; a + (reduces ? 0 : 1) < last; ++a) order.push_back(AxisLoop(w, id, a));
  order.push_back(rows + ".0");
  order.push_back(reduces ? stage.name + ".r0" : AxisLoop(w, id, last - 1));
  order.insert(order.end(), {rows + ".1", rows + ".2"});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  if (reduces)
    w.Emit(fmt::format("{} = cache_write({}, register, at={}.0)", w.NextStage(), stage.name, rows));
  w.Emit(fmt::format("unroll({0}.1); vectorize({0}.2)", rows));
}

/// The copy's last two axes by blocks, each of which is turned in registers.
void TurnPanel(TraceWriter& w, int copy, const std::string& at, int lanes) {
  w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(copy), at));
  const ir::Stage stage = w.stage(copy);
  const int last = stage.num_spatial() - 1;
  const std::string depth = AxisLoop(w, copy, last - 1), rows = AxisLoop(w, copy, last);
  const int64_t n = stage.spatial[last - 1];
  w.Emit(fmt::format("split({}, {}, mask)", rows, lanes));
  std::vector<std::string> order;
  for (int a = 0; a + 1 < last; ++a) order.push_back(AxisLoop(w, copy, a));
  const bool blocks = n > lanes;
  if (blocks)
    w.Emit(fmt::format("split({}, {}{})", depth, lanes, n % lanes == 0 ? "" : ", two_sizes"));
  if (blocks) order.push_back(depth + ".0");
  order.insert(order.end(), {rows + ".0", blocks ? depth + ".1" : depth, rows + ".1"});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  w.Emit(fmt::format("unroll({}); vectorize({}.1)", blocks ? depth + ".1" : depth, rows));
}

/// What the load moves along becomes the last dimensions: first `inner`, then `last`.
std::string TurnedLayout(const Access& access, int inner, int last) {
  std::vector<std::string> order;
  for (const int place : {0, 1, 2}) {
    for (size_t d = 0; d < access.indices.size(); ++d) {
      const bool is_last = ir::DependsOnVar(access.indices[d], last);
      const bool is_inner = !is_last && ir::DependsOnVar(access.indices[d], inner);
      if (place == (is_last ? 2 : is_inner ? 1 : 0)) order.push_back(fmt::format("i{}", d));
    }
  }
  return fmt::format("[{}]", fmt::join(order, ", "));
}

/// Copies of the rows that are read at `at`: blocks of `lanes` by `lanes` are turned in registers.
void TurnQueries(TraceWriter& w, const TileForm& form, const std::string& at) {
  for (int t : form.packed) {
    for (const Access& a : AccessesOf(w.workload(), w.stage(form.anchor))) {
      if (a.tensor != t) continue;
      const int copy = static_cast<int>(w.workload().stages.size());
      w.Emit(fmt::format("{} = pack({}, {}, {})", w.NextStage(), w.name(form.anchor),
                         w.workload().tensors[t].name,
                         TurnedLayout(a, form.reduce.back(), form.vector_axis)));
      if (!w.status().ok() || w.workload().tensors[t].kind == ir::TensorKind::kConstant) break;
      TurnPanel(w, copy, at, form.lanes);
      break;
    }
  }
}

/// Copies what the map of the scores reads along the rows in the layout of the scores.
void TurnScores(TraceWriter& w, const TileForm& form, const ir::Target& target) {
  if (form.owner == form.anchor) return;
  const ir::Stage owner = w.stage(form.owner);
  std::vector<int> done;
  for (const Access& a : AccessesOf(w.workload(), owner)) {
    if (a.tensor == w.stage(form.anchor).results[0] || std::ranges::count(done, a.tensor) > 0 ||
        !NeedsPacking(w.workload(), a, form.vector_axis, owner.spatial[form.vector_axis]))
      continue;
    done.push_back(a.tensor);
    const int copy = static_cast<int>(w.workload().stages.size());
    w.Emit(fmt::format("{} = pack({}, {}, {})", w.NextStage(), owner.name,
                       w.workload().tensors[a.tensor].name,
                       TurnedLayout(a, form.row_axis, form.vector_axis)));
    if (w.status().ok() && w.workload().tensors[a.tensor].kind != ir::TensorKind::kConstant)
      ScheduleMap(w, copy, 1, target);
  }
}

/// The loops of blocks of so many rows and of the tile in them; gives the blocks' and the tile's.
/// Rows that are left over are a block of their own, of which the numbers are known everywhere.
BlockLoops LaneLoops(TraceWriter& w, const AttentionOwner& own, const TileForm& form,
                     const TileChoice& c, int64_t block, const ir::Target& target) {
  const ir::Stage stage = w.stage(own.stage);
  const int64_t rows = stage.spatial[own.query], tiles = (block + c.rows - 1) / c.rows;
  const std::string q = AxisLoop(w, own.stage, own.query), v = AxisLoop(w, own.stage, own.vector);
  const bool even = rows % block == 0;
  w.Emit(fmt::format("split({}, {}{})", q, block, even ? "" : ", mask"));
  w.Emit(fmt::format("split({}.1, {}, two_sizes)", q, c.rows));
  w.Emit(fmt::format("split({}, [{}, {}]{})", v, c.vectors, form.lanes,
                     stage.spatial[own.vector] % (c.vectors * form.lanes) == 0 ? "" : ", mask"));
  std::vector<std::string> loops, order;
  std::vector<int64_t> extents;
  for (int a : own.others) {
    loops.push_back(AxisLoop(w, own.stage, a));
    extents.push_back(stage.spatial[a]);
  }
  order = loops;
  order.push_back(q + ".0");
  if (even) loops.push_back(order.back()), extents.push_back(rows / block);
  BlockLoops out{order.back(), q + ".1.0"};
  order.insert(order.end(), {v + ".0", q + ".1.0", q + ".1.1", v + ".1", v + ".2"});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  if (!even) {
    w.Emit(fmt::format("partition({}.0, [-1])", q));
    std::vector<std::string> cuts;
    for (int64_t k = 1; k < tiles; ++k) cuts.push_back(std::to_string(k));
    if (tiles > 1) w.Emit(fmt::format("partition({}, [{}])", out.tile, fmt::join(cuts, ",")));
  }
  w.Emit(fmt::format("unroll({}.1.1); unroll({}.1); vectorize({}.2)", q, v, v));
  const ParallelLoop parallel = Parallelise(w, own.stage, loops, extents, target);
  if (even && parallel.consumed == loops.size()) out.block = parallel.name;
  return out;
}

/// What a block of rows works through: keys, terms of a score, vectors of values.
struct BlockWork {
  int64_t keys = 0, depth = 0, values = 0;
};

/// Parts that a partition can have.
constexpr int64_t kMostSiblings = 9;

/// Cycles of a step of a tile's sum: two multiply-adds or loads in each, and each sum waits four
/// for the one before.
double StepCycles(double rows, double vectors) {
  return std::max({rows * vectors / 2, (rows + vectors) / 2, 4.0}) + 0.15 * vectors + 0.5;
}

/// Nominal cycles of a block: both products, then the maximum of each key, which waits for that of
/// the key before, and the exponentials.
double CyclesOfBlock(int64_t rows, int64_t lanes, const BlockWork& work, const TileChoice& scores,
                     const TileChoice& output) {
  constexpr double kMaximum = 8, kMaximumOfVector = 2, kExponential = 10;
  const auto parts = [](int64_t n, int64_t most) { return (n + most - 1) / most; };
  const auto vectors = static_cast<double>(parts(rows, lanes));
  const auto keys = static_cast<double>(work.keys);
  const auto key_tiles = static_cast<double>(parts(work.keys, scores.rows));
  const auto row_tiles = static_cast<double>(parts(rows, output.rows));
  const auto value_tiles = static_cast<double>(parts(work.values, output.vectors));
  const double first =
      key_tiles * static_cast<double>(work.depth) * StepCycles(keys / key_tiles, vectors);
  const double second =
      row_tiles * value_tiles * keys *
      StepCycles(static_cast<double>(rows) / row_tiles, static_cast<double>(output.vectors));
  return first + second +
         keys * (std::max(kMaximum, kMaximumOfVector * vectors) + kExponential * vectors);
}

/// Divides after the product. Gives the Stage of the sums' reciprocals; -1 where the product's
/// readers divide already.
int DivideLate(TraceWriter& w, AttentionForm* f) {
  if (!f->divided) return -1;
  const int inverse = static_cast<int>(w.workload().stages.size());
  w.Emit(fmt::format("{} = algorithm({}, late_quotient, 0)", w.NextStage(), w.name(f->product)));
  if (!w.status().ok()) return -1;
  if (!w.workload().tensors[w.stage(f->product).results[0]].output)
    w.Emit(fmt::format("inline({})", w.name(f->product)));
  f->product = inverse + 1;
  f->quotient = -1;
  f->divided = false;
  return inverse;
}

}  // namespace

std::vector<TileChoice> LaneTiles(const TraceWriter& w, const AttentionForm& f,
                                  const ir::Target& target) {
  std::vector<TileChoice> tiles;
  const auto own = AxesOfProduct(w, f);
  const int lanes = LanesFor(ir::DType::kF32, target);
  if (!own.ok()) return tiles;
  const int64_t rows = w.stage(f.product).spatial[own->query], vectors = rows / lanes;
  const TileForm form = FindTileForm(w, {f.product, f.product, {}, 0}, target);
  const auto& cpu = target.As<ir::CpuTarget>();
  const int64_t registers = cpu.registers;
  for (int64_t v = 1; v <= std::min<int64_t>(vectors, kMostVectors); ++v) {
    // Tiles of a block beside one that is not whole are siblings, of which there are nine at most.
    const int64_t block = v * lanes, output = OutputTile(w, form, block, target).rows;
    if (rows % block != 0 && (block + output - 1) / output > kMostSiblings) continue;
    // Scores and exponentials of a block.
    if (2 * f.keys * v * lanes * ir::SizeOf(ir::DType::kF32) > cpu.l2_bytes / 2) break;
    for (int64_t keys : {4, 5, 6, 8, 9, 12, 14}) {
      if (keys * v >= kLeastSums && keys * v + v + 1 <= registers && keys <= f.keys)
        tiles.push_back({.rows = keys, .vectors = v});
    }
  }
  return tiles;
}

std::optional<TileChoice> NominalLaneTile(const TraceWriter& w, const AttentionForm& f,
                                          const ir::Target& target) {
  const auto own = AxesOfProduct(w, f);
  if (!own.ok()) return std::nullopt;
  const int64_t lanes = LanesFor(ir::DType::kF32, target);
  const ir::Stage& product = w.stage(f.product);
  const int64_t rows = product.spatial[own->query];
  const int64_t depth = w.stage(f.contraction).reduce[0];
  int64_t heads = 1;
  for (int a : own->others) heads *= product.spatial[a];
  const TileForm form = FindTileForm(w, {f.product, f.product, {}, 0}, target);
  std::optional<TileChoice> best;
  double least = 0;
  for (const TileChoice& c : LaneTiles(w, f, target)) {
    const int64_t block = c.vectors * lanes, rest = rows % block;
    const int64_t shares = rest == 0 ? heads * (rows / block) : heads;
    const double imbalance = ThreadImbalance(shares, target);
    if (imbalance > kMostImbalance) continue;
    const TileChoice output = OutputTile(w, form, block, target);
    double cycles = static_cast<double>(rows / block) *
                    CyclesOfBlock(block, lanes, {f.keys, depth, form.vectors_total}, c, output);
    if (rest > 0)
      cycles += CyclesOfBlock(rest, lanes, {f.keys, depth, form.vectors_total}, c, output);
    cycles *= imbalance;
    if (!best || cycles < least) best = c, least = cycles;
  }
  return best;
}

absl::Status PlanAttentionByLanes(TraceWriter& w, const AttentionChoice& choice, AttentionForm f,
                                  const ir::Target& target) {
  const int inverse = DivideLate(w, &f);
  HONE_RETURN_IF_ERROR(w.status());
  HONE_ASSIGN_OR_RETURN(const AttentionOwner product, AxesOfProduct(w, f));
  HONE_ASSIGN_OR_RETURN(const AttentionOwner own, FindOwner(w, f));
  const int row = RowAxis(f, product.query);
  if (row < 0) return UnfitAttention("its rows are no axis of its scores");
  std::vector<int> apart = StagesOf(f);
  apart.insert(apart.end(), {own.stage, inverse});
  HONE_RETURN_IF_ERROR(ScheduleOthers(w, apart, target));
  for (size_t k = 1; k + 1 < f.chain.size(); ++k)
    w.Emit(fmt::format("inline({})", w.name(f.chain[k])));
  std::vector<int> turned = {f.contraction, f.exponential, f.max, f.sum};
  if (f.chain.back() != f.contraction) turned.push_back(f.chain.back());
  if (inverse >= 0) turned.push_back(inverse);
  for (int id : turned) PermuteLast(w, id, row);
  HONE_RETURN_IF_ERROR(w.status());

  const TileForm scores = FindTileForm(w, {f.chain.back(), f.contraction, {}, 0}, target);
  if (scores.row_axis != w.stage(f.contraction).num_spatial() - 2 ||
      scores.vector_axis != scores.row_axis + 1)
    return UnfitAttention("its keys and rows are not those of a product");
  const int64_t rows = w.stage(own.stage).spatial[own.query];
  const int64_t vectors = std::min(choice.tile.vectors, rows / scores.lanes);
  const int64_t block = vectors * scores.lanes;
  if (vectors < 1) return UnfitAttention("its rows fill no vector");
  const TileForm form = FindTileForm(w, {f.product, f.product, {}, 0}, target);
  const TileChoice c = OutputTile(w, form, block, target);
  PackPanels(w, form, c.vectors * form.lanes, target);
  const BlockLoops loops = LaneLoops(w, own, form, c, block, target);
  ScheduleAnchorInside(w, form, loops.tile);
  if (inverse >= 0) {
    w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(inverse), loops.block));
    RoundLast(w, inverse, scores.lanes);
    VectorizeLast(w, inverse, scores.lanes, block, rows % block == 0);
  }
  for (int id : {f.sum, f.exponential, f.max}) {
    w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(id), loops.block));
    RoundLast(w, id, scores.lanes);
    GroupLanes(w, id, vectors, scores.lanes);
  }
  TurnScores(w, scores, target);
  w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(scores.owner), loops.block));
  ScheduleTileInside(w, scores, {.rows = choice.tile.rows, .vectors = vectors});
  TurnQueries(w, scores, loops.block);
  return w.status();
}

}  // namespace hone::schedule
