#include "schedule/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status.h"
#include "schedule/lower.h"
#include "schedule/sketches/winograd.h"
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
  return heaviest;
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
    case PlanForm::Kind::kScan: ScheduleScan(writer, c.owner, target); return;
    case PlanForm::Kind::kTile:
      ScheduleTile(writer, FindTileForm(writer, c, target), choice.tile, choice.padding, target);
      return;
    case PlanForm::Kind::kRows: ScheduleRows(writer, c, choice.partial_vectors, target); return;
    case PlanForm::Kind::kMap: ScheduleMap(writer, c.owner, choice.unroll, target); return;
  }
}

}  // namespace

PlanForm FindPlanForm(const ir::Workload& workload, const ir::Target& target) {
  TraceWriter writer(workload);
  PlanForm form;
  const int pad = FindPadStage(writer.workload());
  std::vector<Cluster> clusters = FindClusters(writer, -1);
  if (clusters.empty() || !writer.status().ok()) return form;
  const Cluster& c = clusters[Heaviest(writer, clusters)];
  form.kind = KindOf(writer, c);
  const ir::Stage& owner = writer.stage(c.owner);
  const int v = VectorAxis(owner);
  form.row_length = v < 0 ? 1 : owner.spatial[v];
  form.lanes = LanesFor(writer.workload().tensors[owner.results[0]].dtype, target);
  if (form.kind == PlanForm::Kind::kTile) {
    form.tile = FindTileForm(writer, c, target);
    form.nominal = NominalTile(writer, form.tile, target);
    form.padded = pad >= 0;
    form.winograd = FindWinogradStage(workload) >= 0;
    if (!form.tile.reduce.empty())
      form.reduce_inner = writer.stage(c.anchor).Extent(form.tile.reduce.back());
  }
  return form;
}

PlanChoice NominalChoice(const PlanForm& form) {
  PlanChoice c;
  c.tile = form.nominal;
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
  const bool keep_pad = choice.padding == Padding::kTile || choice.padding == Padding::kRoot;
  const int pad = keep_pad ? FindPadStage(writer.workload()) : -1;
  std::vector<Cluster> clusters = FindClusters(writer, pad);
  HONE_RETURN_IF_ERROR(writer.status());
  const size_t main = clusters.empty() ? 0 : Heaviest(writer, clusters);
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (pad >= 0 && clusters[i].owner == pad && choice.padding == Padding::kTile) continue;
    PlanChoice nominal;
    if (i != main && KindOf(writer, clusters[i]) == PlanForm::Kind::kTile) {
      nominal.tile = NominalTile(writer, FindTileForm(writer, clusters[i], target), target);
    }
    ScheduleCluster(writer, clusters[i], i == main ? choice : nominal, target);
    if (i == main && pad >= 0 && choice.padding == Padding::kTile)
      SchedulePadTile(writer, pad, clusters[i].owner, target);
  }
  HONE_RETURN_IF_ERROR(writer.status());
  return writer.trace();
}

absl::StatusOr<Trace> DefaultTrace(const ir::Workload& workload, const ir::Target& target) {
  return PlanTrace(workload, target, NominalChoice(FindPlanForm(workload, target)));
}

}  // namespace hone::schedule
