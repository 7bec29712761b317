#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "schedule/sketches/rules.h"

// Stages of a scan: the sequential axis stays outermost, each iteration is a phase of every Stage.
namespace hone::schedule {

namespace {

/// Multiply-adds of one iteration below which a second thread is not worth a barrier.
constexpr int64_t kParallelSteps = 1 << 16;

std::string AxisName(const ir::Stage& stage, int axis) {
  return fmt::format("{}.i{}", stage.name, axis);
}

/// A product with constant weights, as in LSTM and GRU: panels of the weights, a tile of batch rows
/// × vectors in registers.
void ScheduleProduct(TraceWriter& w, const TileForm& form, const TileChoice& choice,
                     const ir::Target& target) {
  PackPanels(w, form, choice.vectors * form.lanes, target);
  const ir::Stage stage = w.stage(form.anchor);
  const std::string v = AxisName(stage, form.vector_axis);
  const int64_t columns = stage.spatial[form.vector_axis], panel = choice.vectors * form.lanes;
  w.Emit(fmt::format("split({}, [{}, {}]{})", v, choice.vectors, form.lanes,
                     columns % panel == 0 ? "" : ", mask"));
  const std::string row = form.row_axis < 0 ? "" : AxisName(stage, form.row_axis);
  std::vector<std::string> order = {AxisName(stage, 0), v + ".0"};
  int64_t steps = columns;
  for (int a = 1; a < stage.num_spatial(); ++a) {
    if (a != form.vector_axis) steps *= stage.spatial[a];
    if (a != form.vector_axis && a != form.row_axis) order.push_back(AxisName(stage, a));
  }
  if (!row.empty()) {
    w.Emit(fmt::format("split({}, {}, two_sizes)", row, choice.rows));
    order.push_back(row + ".0");
  }
  const std::string tile_loop = order.back();
  for (int r : form.reduce) {
    order.push_back(fmt::format("{}.r{}", stage.name, r - stage.num_spatial()));
    steps *= stage.Extent(r);
  }
  if (!row.empty()) order.push_back(row + ".1");
  order.push_back(v + ".1");
  order.push_back(v + ".2");
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  w.Emit(
      fmt::format("{} = cache_write({}, register, at={})", w.NextStage(), stage.name, tile_loop));
  if (!row.empty()) w.Emit(fmt::format("unroll({}.1)", row));
  w.Emit(fmt::format("unroll({}.1)", v));
  w.Emit(fmt::format("vectorize({}.2)", v));
  if (target.threads > 1 && steps >= kParallelSteps && columns > panel)
    w.Emit(fmt::format("parallel({}.0, {})", v, target.threads));
}

}  // namespace

TileForm FindScanForm(const TraceWriter& w, int stage, const ir::Target& target) {
  const ir::Stage& s = w.stage(stage);
  TileForm none;
  if (s.combiner == ir::Combiner::kNone || RoleOf(w.workload(), s) != Role::kContraction)
    return none;
  TileForm f = FindTileForm(w, {stage, stage, {}, 0}, target);
  f.row_axis = -1;
  f.rows_total = 1;
  f.border = false;
  f.unrolled.clear();
  for (int a = 1; a < s.num_spatial(); ++a) {
    if (a != f.vector_axis && s.spatial[a] > 1) f.row_axis = a, f.rows_total = s.spatial[a];
  }
  return f.vector_axis < 1 ? none : f;
}

void ScheduleScan(TraceWriter& w, int id, const TileChoice& choice, const ir::Target& target) {
  const ir::Stage stage = w.stage(id);
  const TileForm form = FindScanForm(w, id, target);
  if (form.anchor >= 0) return ScheduleProduct(w, form, choice, target);
  const int v = VectorAxis(w.workload(), stage);
  if (v < 1) return;
  const int lanes = LanesFor(w.workload().tensors[stage.results[0]].dtype, target);
  const std::string axis = AxisName(stage, v);
  const int64_t width = std::min<int64_t>(lanes, stage.spatial[v]);
  w.Emit(
      fmt::format("split({}, {}{})", axis, width, stage.spatial[v] % width == 0 ? "" : ", mask"));
  if (stage.num_reduce() > 0) {
    std::vector<std::string> order = {axis + ".0"};
    for (int r = 0; r < stage.num_reduce(); ++r)
      order.push_back(fmt::format("{}.r{}", stage.name, r));
    order.push_back(axis + ".1");
    w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
    if (!ir::IsTuple(stage.combiner)) {
      w.Emit(
          fmt::format("{} = cache_write({}, register, at={}.0)", w.NextStage(), stage.name, axis));
    }
  }
  if (!ir::IsTuple(stage.combiner)) w.Emit(fmt::format("vectorize({}.1)", axis));
}

}  // namespace hone::schedule
