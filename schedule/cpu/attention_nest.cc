#include "schedule/cpu/attention_nest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/cpu/panels.h"
#include "schedule/nest_builder.h"
#include "schedule/stage_cost.h"
#include "schedule/structure.h"

namespace hone::schedule {

namespace {
constexpr int64_t kCheap = 2;  ///< operations that may be repeated for every read
}  // namespace

absl::Status UnfitAttention(const std::string& why) {
  return absl::InvalidArgumentError("attention: " + why);
}

std::string AxisLoop(const TraceWriter& w, int stage, int axis) {
  return fmt::format("{}.i{}", w.name(stage), axis);
}

absl::StatusOr<AttentionOwner> AxesOfProduct(const TraceWriter& w, const AttentionForm& f) {
  AttentionOwner own;
  own.stage = f.product;
  const ir::Stage& p = w.stage(f.product);
  own.vector = VectorAxis(w.workload(), p);
  std::vector<bool> row(p.spatial.size(), false), value(p.spatial.size(), false);
  for (int a = 0; a < p.num_spatial(); ++a) {
    for (const ir::Expr& i : f.row) row[a] = row[a] || ir::DependsOnVar(i, a);
    value[a] = ir::DependsOnVar(f.values, a);
    if (row[a] && !value[a] && p.spatial[a] > 1) own.query = a;
  }
  if (own.vector < 0 || row[own.vector] || own.query < 0)
    return UnfitAttention("no rows share their keys");
  for (int a = 0; a < p.num_spatial(); ++a) {
    if (a != own.query && a != own.vector) own.others.push_back(a);
  }
  return own;
}

absl::StatusOr<AttentionOwner> FindOwner(const TraceWriter& w, const AttentionForm& f) {
  HONE_ASSIGN_OR_RETURN(const AttentionOwner product, AxesOfProduct(w, f));
  const ir::Workload& workload = w.workload();
  if (workload.tensors[w.stage(f.product).results[0]].output) return product;
  std::vector<int> readers;
  for (int id : LiveStages(w.schedule())) {
    if (id != f.product && Loads(w.stage(id), w.stage(f.product))) readers.push_back(id);
  }
  if (readers.size() != 1) return UnfitAttention("its result has several readers");
  const ir::Stage& map = w.stage(readers[0]);
  if (map.combiner != ir::Combiner::kNone || !workload.tensors[map.results[0]].output)
    return UnfitAttention("its result is not stored by a map");
  for (const Access& a : AccessesOf(workload, map)) {
    if (a.tensor != w.stage(f.product).results[0]) continue;
    AttentionOwner own;
    own.stage = readers[0];
    std::vector<int> axis_of;
    for (const ir::Expr& i : a.indices)
      axis_of.push_back(i->kind == ir::ExprKind::kVar ? i->id : -1);
    own.query = axis_of[product.query];
    own.vector = axis_of[product.vector];
    if (own.query < 0 || own.vector < 0)
      return UnfitAttention("its result is stored in another shape");
    for (int k = 0; k < map.num_spatial(); ++k) {
      if (k != own.query && k != own.vector) own.others.push_back(k);
    }
    const ir::Stage& p = w.stage(f.product);
    const bool same = map.spatial[own.query] == p.spatial[product.query] &&
                      map.spatial[own.vector] == p.spatial[product.vector];
    if (!same) return UnfitAttention("its result is stored in another shape");
    return own;
  }
  return UnfitAttention("its result is stored in another shape");
}

void ScheduleRowSum(TraceWriter& w, int id, int lanes) {
  constexpr int64_t kMostVectors = 4;
  const ir::Stage stage = w.stage(id);
  const int64_t n = stage.reduce[0];
  if (n < 2 * lanes) return;
  const int64_t vectors = std::clamp<int64_t>(n / (2 * lanes), 1, kMostVectors);
  const std::string at = AxisLoop(w, id, stage.num_spatial() - 1);
  const int last = stage.num_spatial();
  const std::string partial = w.NextStage();
  w.Emit(fmt::format("{} = rfactor({}, {}.r0, {}, inner)", partial, stage.name, stage.name,
                     vectors * lanes));
  if (vectors > 1) {
    const std::string fold = w.NextStage();
    w.Emit(fmt::format("{} = rfactor({}, {}.r0, {}, inner)", fold, stage.name, stage.name, lanes));
    w.Emit(fmt::format("compute_at({}, {}, register)", fold, at));
    w.Emit(
        fmt::format("reorder({0}.r0, {0}.i{1}); unroll({0}.r0); vectorize({0}.i{1})", fold, last));
  }
  w.Emit(fmt::format("compute_at({}, {}, register)", partial, at));
  w.Emit(fmt::format("split({0}.i{1}, {2}); reorder({0}.r0, {0}.i{1}.0, {0}.i{1}.1)", partial, last,
                     lanes));
  w.Emit(fmt::format("unroll({0}.i{1}.0); vectorize({0}.i{1}.1)", partial, last));
  w.Emit(fmt::format("vectorize({}.r0)", stage.name));
}

void VectorizeLast(TraceWriter& w, int id, int lanes, int64_t extent, bool equal) {
  const int64_t width = std::min<int64_t>(lanes, extent);
  if (width < 2) return;
  const std::string axis = AxisLoop(w, id, w.stage(id).num_spatial() - 1);
  w.Emit(fmt::format("split({}, {}{})", axis, width, equal && extent % width == 0 ? "" : ", mask"));
  w.Emit(fmt::format("vectorize({}.1)", axis));
}

TileChoice OutputTile(const TraceWriter& w, TileForm form, int64_t rows, const ir::Target& target) {
  form.rows_total = rows;
  return NominalTile(w, form, target);
}

TileChoice TileOfScores(const TileForm& form, const AttentionChoice& choice, int64_t rows) {
  TileChoice c = choice.tile;
  c.rows = std::clamp<int64_t>(c.rows, 1, rows);
  c.vectors = std::clamp<int64_t>(c.vectors, 1, form.vectors_total);
  while (c.vectors > 1 && !form.FitsBlock(c.vectors)) --c.vectors;
  return c;
}

BlockLoops OwnerLoops(TraceWriter& w, const AttentionOwner& own, const TileForm& form,
                      const TileChoice& c, int64_t block, int time, bool reduces,
                      const ir::Target& target) {
  const ir::Stage stage = w.stage(own.stage);
  const int64_t rows = stage.spatial[own.query];
  const std::string q = AxisLoop(w, own.stage, own.query), v = AxisLoop(w, own.stage, own.vector);
  const bool even = rows % block == 0;
  const int64_t panel = c.vectors * form.lanes;
  w.Emit(fmt::format("split({}, {}{})", q, block, even ? "" : ", two_sizes"));
  w.Emit(fmt::format("split({}.1, {}, two_sizes)", q, c.rows));
  w.Emit(fmt::format("split({}, [{}, {}]{})", v, c.vectors, form.lanes,
                     stage.spatial[own.vector] % panel == 0 ? "" : ", mask"));
  std::vector<std::string> loops, order;
  std::vector<int64_t> extents;
  for (int a : own.others) {
    if (a == time) continue;
    loops.push_back(AxisLoop(w, own.stage, a));
    extents.push_back(stage.spatial[a]);
  }
  order = loops;
  order.push_back(q + ".0");
  if (even) loops.push_back(order.back()), extents.push_back(rows / block);
  if (time >= 0) order.push_back(AxisLoop(w, own.stage, time));
  BlockLoops out{order.back(), q + ".1.0"};
  order.insert(order.end(), {v + ".0", q + ".1.0"});
  if (reduces) order.push_back(w.name(own.stage) + ".r0");
  order.insert(order.end(), {q + ".1.1", v + ".1", v + ".2"});
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  if (reduces) {
    w.Emit(fmt::format("{} = cache_write({}, register, at={})", w.NextStage(), w.name(own.stage),
                       out.tile));
  }
  w.Emit(fmt::format("unroll({}.1.1); unroll({}.1); vectorize({}.2)", q, v, v));
  const ParallelLoop parallel = Parallelise(w, own.stage, loops, extents, target);
  if (even && time < 0 && parallel.consumed == loops.size()) out.block = parallel.name;
  return out;
}

TileForm FormOfScores(TraceWriter& w, const std::vector<int>& chain, const ir::Target& target) {
  for (size_t k = 1; k + 1 < chain.size(); ++k) w.Emit(fmt::format("inline({})", w.name(chain[k])));
  return FindTileForm(w, {chain.back(), chain.front(), {}, 0}, target);
}

void ScheduleScores(TraceWriter& w, const TileForm& form, const TileChoice& tile,
                    const std::string& at, const ir::Target& target) {
  if (!w.status().ok() || form.vector_axis < 0) return;
  PackPanels(w, form, tile.vectors * form.lanes, target);
  w.Emit(fmt::format("compute_at({}, {}, memory)", w.name(form.owner), at));
  ScheduleTileInside(w, form, tile);
}

absl::Status ScheduleOthers(TraceWriter& w, const std::vector<int>& apart,
                            const ir::Target& target) {
  for (int id : LiveStages(w.schedule())) {
    if (std::find(apart.begin(), apart.end(), id) != apart.end()) continue;
    const ir::Stage stage = w.stage(id);
    if (stage.combiner != ir::Combiner::kNone || stage.scan >= 0)
      return UnfitAttention(fmt::format("{} stands beside it", stage.name));
    if (CostOf(stage) <= kCheap && !w.workload().tensors[stage.results[0]].output)
      w.Emit(fmt::format("inline({})", stage.name));
    else
      ScheduleMap(w, id, 1, target);
  }
  return w.status();
}

std::vector<int> StagesOf(const AttentionForm& f) {
  std::vector<int> all = f.chain;
  all.insert(all.end(), {f.product, f.max, f.exponential, f.sum, f.quotient});
  return all;
}

bool HasUnevenOthers(const TraceWriter& w, const AttentionOwner& own, const ir::Target& target) {
  int64_t others = 1;
  for (int a : own.others) others *= w.stage(own.stage).spatial[a];
  return others % target.threads != 0;
}

}  // namespace hone::schedule
