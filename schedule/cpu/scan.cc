#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/cpu/cpu_rules.h"
#include "schedule/cpu/tile_table.h"
#include "schedule/trace_query.h"

// Stages of a scan: the sequential axis stays outermost, each iteration is a phase of every Stage.
namespace hone::schedule {

namespace {

/// Multiply-adds of one iteration below which a second thread is not worth a barrier.
constexpr int64_t kParallelSteps = 1 << 16;
/// Points of a cumulative sum below which a second thread is not worth a barrier.
constexpr int64_t kParallelPoints = 1 << 15;
/// Vectors of a cumulative sum that advance together: what they carry stays in the first cache.
constexpr int64_t kCumulatedVectors = 64;
/// Steps of a cumulative sum without another axis that are one inner loop.
constexpr int64_t kCumulatedSteps = 64;

std::string AxisName(const ir::Stage& stage, int axis) {
  return fmt::format("{}.i{}", stage.name, axis);
}

/// Multiply-adds of one iteration.
int64_t StepsOf(const ir::Stage& product) {
  int64_t steps = 1;
  for (int a = 1; a < product.num_axes(); ++a) steps *= product.Extent(a);
  return steps;
}

/// A product with constant weights, as in LSTM and GRU: panels of the weights, a tile of batch rows
/// × vectors in registers. Where another Stage of the scan owns the loops, it makes its points from
/// the tile while that is in registers.
void ScheduleProduct(TraceWriter& w, const TileForm& form, const TileChoice& choice,
                     const ir::Target& target) {
  PackPanels(w, form, choice.vectors * form.lanes, target);
  const bool own = form.owner == form.anchor;
  const ir::Stage stage = w.stage(form.owner);
  const std::string v = AxisName(stage, form.vector_axis);
  const int64_t columns = stage.spatial[form.vector_axis], panel = choice.vectors * form.lanes;
  w.Emit(fmt::format("split({}, [{}, {}]{})", v, choice.vectors, form.lanes,
                     columns % panel == 0 ? "" : ", mask"));
  const std::string row = form.row_axis < 0 ? "" : AxisName(stage, form.row_axis);
  std::vector<std::string> order = {AxisName(stage, 0), v + ".0"};
  for (int a : form.outer) {
    if (a > 0) order.push_back(AxisName(stage, a));
  }
  if (!row.empty()) {
    w.Emit(fmt::format("split({}, {}, two_sizes)", row, choice.rows));
    order.push_back(row + ".0");
  }
  const std::string tile_loop = order.back();
  for (int r : form.reduce) {
    if (own) order.push_back(fmt::format("{}.r{}", stage.name, r - stage.num_spatial()));
  }
  if (!row.empty()) order.push_back(row + ".1");
  order.push_back(v + ".1");
  order.push_back(v + ".2");
  w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  if (own) {
    w.Emit(
        fmt::format("{} = cache_write({}, register, at={})", w.NextStage(), stage.name, tile_loop));
  }
  if (!row.empty()) w.Emit(fmt::format("unroll({}.1)", row));
  w.Emit(fmt::format("unroll({}.1)", v));
  w.Emit(fmt::format("vectorize({}.2)", v));
  if (target.threads > 1 && StepsOf(w.stage(form.anchor)) >= kParallelSteps && columns > panel)
    w.Emit(fmt::format("parallel({}.0, {})", v, target.threads));
  if (!own) ScheduleAnchorInside(w, form, tile_loop);
}

/// A cumulative sum: the sequential axis inside the others, so that one phase does all of it, on
/// several threads. Along the vector axis blocks of a length of which many fit the first cache
/// stand outside where there is no other axis to share among threads.
void ScheduleCumulated(TraceWriter& w, int id, const ir::Target& target) {
  const ir::Stage stage = w.stage(id);
  const std::string t = AxisName(stage, 0);
  const int v = VectorAxis(w.workload(), stage);
  int64_t points = 1, rows = 1;
  for (int64_t n : stage.spatial) points *= n;
  std::vector<std::string> outer, order;
  std::vector<int64_t> extents;
  for (int a = 1; a < stage.num_spatial(); ++a) {
    if (a == v || stage.spatial[a] == 1) continue;
    outer.push_back(AxisName(stage, a));
    extents.push_back(stage.spatial[a]);
    rows *= stage.spatial[a];
  }
  std::string vectors;
  if (v >= 1) {
    const int lanes = LanesFor(w.workload().tensors[stage.results[0]].dtype, target);
    const int64_t n = stage.spatial[v], width = std::min<int64_t>(lanes, n);
    const int64_t total = (n + width - 1) / width;
    const int64_t most =
        rows >= target.threads ? kCumulatedVectors : (total + target.threads - 1) / target.threads;
    const int64_t block = std::clamp<int64_t>(total, 1, std::min(most, kCumulatedVectors));
    vectors = AxisName(stage, v);
    w.Emit(fmt::format("split({}, [{}, {}]{})", vectors, block, width,
                       n % (block * width) == 0 ? "" : ", mask"));
    outer.push_back(vectors + ".0");
    extents.push_back((total + block - 1) / block);
  }
  order = outer;
  if (outer.empty() && stage.spatial[0] > kCumulatedSteps) {
    // The iterations of what is not outermost alone are no phases of their own.
    w.Emit(fmt::format("split({}, {}{})", t, kCumulatedSteps,
                       stage.spatial[0] % kCumulatedSteps == 0 ? "" : ", mask"));
  } else if (!outer.empty()) {
    order.push_back(t);
  }
  if (!vectors.empty()) {
    order.push_back(vectors + ".1");
    order.push_back(vectors + ".2");
  }
  if (order.size() > 1) w.Emit(fmt::format("reorder({})", fmt::join(order, ", ")));
  if (!vectors.empty()) w.Emit(fmt::format("vectorize({}.2)", vectors));
  if (!outer.empty() && target.threads > 1 && points >= kParallelPoints)
    Parallelise(w, id, outer, extents, target);
}

}  // namespace

bool CarriesPointByPoint(const ir::Workload& w, const ir::Stage& stage) {
  bool alone = stage.num_reduce() == 0 && stage.results.size() == 1;
  for (const ir::Stage& other : w.stages)
    alone = alone && (other.scan != stage.scan || other.name == stage.name);
  for (const Access& a : AccessesOf(w, stage)) {
    if (a.tensor != stage.results[0]) continue;
    for (int d = 1; d < stage.num_spatial(); ++d)
      alone = alone && a.indices[d]->kind == ir::ExprKind::kVar && a.indices[d]->id == d;
  }
  return alone;
}

TileForm FindScanForm(const TraceWriter& w, const Cluster& cluster, const ir::Target& target) {
  TileForm none;
  if (cluster.anchor < 0) return none;
  const ir::Stage& s = w.stage(cluster.anchor);
  if (RoleOf(w.workload(), s) != Role::kContraction) return none;
  TileForm f = FindTileForm(w, {cluster.owner, cluster.anchor, {}, 0}, target);
  f.row_axis = -1;
  f.rows_total = 1;
  f.border = false;
  f.unrolled.clear();
  for (int a = 1; a < s.num_spatial(); ++a) {
    if (a != f.vector_axis && s.spatial[a] > 1) f.row_axis = a, f.rows_total = s.spatial[a];
  }
  f.outer.clear();
  for (int a = 0; a < s.num_spatial(); ++a) {
    if (a != f.vector_axis && a != f.row_axis) f.outer.push_back(a);
  }
  return f.vector_axis < 1 ? none : f;
}

void ScheduleScan(TraceWriter& w, const Cluster& cluster, const TileChoice& choice,
                  const ir::Target& target) {
  const TileForm form = FindScanForm(w, cluster, target);
  if (form.anchor >= 0) return ScheduleProduct(w, form, choice, target);
  const ir::Stage stage = w.stage(cluster.owner);
  if (CarriesPointByPoint(w.workload(), stage)) return ScheduleCumulated(w, cluster.owner, target);
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

namespace {

/// A recurrence: the register tile of its product, where it has one.
class ScanRule final : public CpuRule {
 public:
  std::vector<Sketch> Sketches(const std::shared_ptr<const CpuSubject>& subject,
                               const TraceWriter& /*writer*/) const override {
    if (subject->kind != ClusterKind::kScan) return {};
    Sketch scan{"scan", {}, nullptr, std::make_shared<CpuForm>(subject)};
    const TileForm& tile = subject->tile;
    if (tile.anchor >= 0)
      scan.tables.push_back(TileTable(tile.rows_total, tile, subject->target, true));
    return {scan};
  }

  absl::Status Emit(const Sketch& sketch, const Values& v, TraceWriter& w) const override {
    const CpuSubject& subject = SubjectOf(sketch);
    return EmitClusters(w, {.force = subject.input}, subject.target, [&](const Cluster& c) {
      if (KindOf(w, c) == ClusterKind::kScan)
        ScheduleScan(w, c, {.rows = v[0], .vectors = v[1]}, subject.target);
      else
        ScheduleNominally(w, c, subject.target);
    });
  }

  absl::StatusOr<Values> Read(const Sketch& sketch, const Trace& trace) const override {
    if (sketch.tables.empty()) return Values{};
    const CpuSubject& subject = SubjectOf(sketch);
    TraceWriter w(subject.workload);
    HONE_ASSIGN_OR_RETURN(const Cluster c, MainCluster(w, {.force = subject.input}));
    const TileForm form = FindScanForm(w, c, subject.target);
    if (form.anchor < 0) return absl::InvalidArgumentError("scan: it has no product");
    const ir::Stage& owner = w.stage(form.owner);
    const std::vector<int64_t> panel = FactorsOf(trace, AxisName(owner, form.vector_axis));
    if (panel.size() != 2) return absl::InvalidArgumentError("scan: its product has no panels");
    if (form.row_axis < 0) return Values{1, panel[0]};
    const std::vector<int64_t> rows = FactorsOf(trace, AxisName(owner, form.row_axis));
    if (rows.empty()) return absl::InvalidArgumentError("scan: its product has no tile");
    return Values{rows[0], panel[0]};
  }

  std::optional<Values> Default(const Sketch& sketch) const override {
    const TileChoice& nominal = SubjectOf(sketch).nominal;
    return Values{nominal.rows, nominal.vectors};
  }

  void Describe(const Sketch& sketch, const Values& v, CpuFacts* facts) const override {
    if (!sketch.tables.empty()) {
      facts->rows = v[0];
      facts->vectors = v[1];
    }
    DescribePass(SubjectOf(sketch), facts);
  }
};

}  // namespace

const CpuRule& ScanSketches() {
  static const ScanRule rule;
  return rule;
}

}  // namespace hone::schedule
