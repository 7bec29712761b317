#include "schedule/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/lower.h"
#include "schedule/sketches/attention.h"
#include "schedule/sketches/winograd.h"
#include "schedule/stage_cost.h"
#include "schedule/structure.h"
#include "schedule/trace_writer.h"

namespace hone::schedule {

namespace {

/// Points of a cluster's anchor or owner, times its reduction: what makes it heavy.
double WeightOf(const TraceWriter& writer, const Cluster& cluster) {
  double heaviest = 0;
  std::vector<int> stages = cluster.members;
  stages.push_back(cluster.owner);
  if (cluster.anchor >= 0) stages.push_back(cluster.anchor);
  for (int id : stages) {
    const ir::Stage& s = writer.stage(id);
    double points = static_cast<double>(std::max<int64_t>(1, CostOf(s)));
    for (int a = 0; a < s.num_axes(); ++a) points *= static_cast<double>(s.Extent(a));
    heaviest = std::max(heaviest, points);
  }
  // The iterations of a scan follow each other: what is in one weighs more than what is hoisted.
  return writer.stage(cluster.owner).scan >= 0 ? heaviest * 4 : heaviest;
}

size_t Heaviest(const TraceWriter& writer, const std::vector<Cluster>& clusters) {
  size_t best = 0;
  for (size_t i = 1; i < clusters.size(); ++i) {
    if (WeightOf(writer, clusters[i]) > WeightOf(writer, clusters[best])) best = i;
  }
  return best;
}

PlanForm::Kind KindOf(const TraceWriter& writer, const Cluster& c) {
  const ir::Stage& owner = writer.stage(c.owner);
  if (owner.scan >= 0) return PlanForm::Kind::kScan;
  if (c.anchor >= 0) return PlanForm::Kind::kTile;
  if (!c.members.empty() || owner.combiner != ir::Combiner::kNone) return PlanForm::Kind::kRows;
  return PlanForm::Kind::kMap;
}

void ScheduleCluster(TraceWriter& writer, const Cluster& c, const PlanChoice& choice,
                     const ir::Target& target) {
  switch (KindOf(writer, c)) {
    case PlanForm::Kind::kScan: ScheduleScan(writer, c, choice.tile, target); return;
    case PlanForm::Kind::kTile:
      ScheduleTile(writer, FindTileForm(writer, c, target), choice.tile, choice.padding, target);
      return;
    case PlanForm::Kind::kRows:
      ScheduleRows(writer, c, {choice.partial_vectors, choice.unroll, choice.tile.rows}, target);
      return;
    case PlanForm::Kind::kMap: ScheduleMap(writer, c.owner, choice.unroll, target); return;
  }
}

/// The register tile of a cluster that has one, and what it would be nominally.
TileForm FormOf(const TraceWriter& writer, const Cluster& c, const ir::Target& target) {
  switch (KindOf(writer, c)) {
    case PlanForm::Kind::kTile: return FindTileForm(writer, c, target);
    case PlanForm::Kind::kScan: return FindScanForm(writer, c, target);
    default: return {};
  }
}

TileChoice NominalTileOf(const TraceWriter& writer, const Cluster& c, const ir::Target& target) {
  if (KindOf(writer, c) == PlanForm::Kind::kRows)
    return {.rows = NominalRowsAtATime(writer, c, target)};
  const TileForm form = FormOf(writer, c, target);
  return form.anchor < 0 ? TileChoice{} : NominalTile(writer, form, target);
}

}  // namespace

PlanForm FindPlanForm(const ir::Workload& workload, const ir::Target& target) {
  TraceWriter writer(workload);
  PlanForm form;
  const int input = FindInputStage(writer.workload());
  std::vector<Cluster> clusters = FindClusters(writer, -1, -1);
  if (clusters.empty() || !writer.status().ok()) return form;
  const Cluster& c = clusters[Heaviest(writer, clusters)];
  form.kind = KindOf(writer, c);
  const ir::Stage& owner = writer.stage(c.owner);
  const int v = VectorAxis(writer.workload(), owner);
  form.row_length = v < 0 ? 1 : owner.spatial[v];
  form.lanes = LanesFor(writer.workload().tensors[owner.results[0]].dtype, target);
  form.tile = FormOf(writer, c, target);
  form.nominal = NominalTileOf(writer, c, target);
  if (form.kind == PlanForm::Kind::kRows) form.rows_at_a_time = RowsAtATime(writer, c);
  if (form.kind == PlanForm::Kind::kScan) form.nominal.order = TileChoice::Order::kRowsOutside;
  if (form.kind == PlanForm::Kind::kTile) {
    form.prepared = input >= 0;
    form.costly = input >= 0 && IsCostlyInput(workload, input);
    form.own_input = input >= 0 && workload.Readers(input) == std::vector<int>{c.anchor};
    form.winograd = FindWinogradStage(workload) >= 0;
    if (!form.tile.reduce.empty())
      form.reduce_inner = writer.stage(c.anchor).Extent(form.tile.reduce.back());
  }
  return form;
}

PlanChoice NominalChoice(const PlanForm& form) {
  PlanChoice c;
  c.tile = form.nominal;
  if (form.costly) c.padding = Padding::kRoot;
  // As many as of the reductions' partial results: then the two can be one loop.
  if (form.kind == PlanForm::Kind::kRows) c.unroll = c.partial_vectors;
  return c;
}

absl::StatusOr<Trace> PlanTrace(const ir::Workload& workload, const ir::Target& target,
                                const PlanChoice& choice) {
  TraceWriter writer(workload);
  if (choice.winograd > 0) {
    HONE_RETURN_IF_ERROR(PlanWinograd(writer, choice, target));
    HONE_RETURN_IF_ERROR(writer.status());
    return writer.trace();
  }
  if (choice.query_rows > 0) {
    HONE_RETURN_IF_ERROR(PlanAttention(writer, choice, target));
    return writer.trace();
  }
  const bool keep = choice.padding == Padding::kTile || choice.padding == Padding::kRoot;
  const int input = FindInputStage(writer.workload());
  const int kept = keep ? input : -1;
  std::vector<Cluster> clusters = FindClusters(writer, kept, keep ? -1 : input);
  HONE_RETURN_IF_ERROR(writer.status());
  const size_t main = clusters.empty() ? 0 : Heaviest(writer, clusters);
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (kept >= 0 && clusters[i].owner == kept && choice.padding == Padding::kTile) continue;
    PlanChoice nominal;
    if (KindOf(writer, clusters[i]) == PlanForm::Kind::kRows)
      nominal.unroll = nominal.partial_vectors;
    if (i != main) nominal.tile = NominalTileOf(writer, clusters[i], target);
    ScheduleCluster(writer, clusters[i], i == main ? choice : nominal, target);
    if (i == main && kept >= 0 && choice.padding == Padding::kTile)
      ScheduleInputTile(writer, kept, clusters[i].owner, target);
  }
  HONE_RETURN_IF_ERROR(writer.status());
  return writer.trace();
}

absl::StatusOr<Trace> DefaultTrace(const ir::Workload& workload, const ir::Target& target) {
  return PlanTrace(workload, target, NominalChoice(FindPlanForm(workload, target)));
}

}  // namespace hone::schedule
