#include "schedule/cpu/cpu_rule.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/status.h"
#include "schedule/cpu/panels.h"
#include "schedule/stage_cost.h"

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

/// The register tile of a cluster that has one.
TileForm FormOf(const TraceWriter& writer, const Cluster& c, const ir::Target& target) {
  switch (KindOf(writer, c)) {
    case ClusterKind::kTile: return FindTileForm(writer, c, target);
    case ClusterKind::kScan: return FindScanForm(writer, c, target);
    default: return {};
  }
}

CpuSubject::Work WorkOf(const CpuSubject& subject) {
  const ir::Workload& w = subject.workload;
  CpuSubject::Work work;
  for (const auto& t : w.tensors) {
    const double bytes = static_cast<double>(t.Bytes());
    if (t.kind == ir::TensorKind::kInput) work.input_bytes += bytes;
    if (t.kind == ir::TensorKind::kConstant) work.constant_bytes += bytes;
    if (t.output) work.output_bytes += bytes;
  }
  if (subject.kind != ClusterKind::kTile) {
    for (const auto& s : w.stages) {
      double points = static_cast<double>(std::max<int64_t>(1, CostOf(s)));
      for (int a = 0; a < s.num_axes(); ++a) points *= static_cast<double>(s.Extent(a));
      work.points += points;
    }
    work.multiply_adds = work.points;
    return work;
  }
  const TileForm& f = subject.tile;
  const ir::Stage& anchor = w.stages[f.anchor];
  work.contraction = RoleOf(w, anchor) == Role::kContraction;
  work.points = 1;
  for (int64_t n : anchor.spatial) work.points *= static_cast<double>(n);
  for (int64_t n : anchor.reduce) work.reduce *= static_cast<double>(n);
  work.multiply_adds = work.points * work.reduce;
  work.rows = static_cast<double>(f.rows_total);
  work.columns = f.vector_axis >= 0 ? static_cast<double>(anchor.spatial[f.vector_axis]) : 1;
  work.outer = work.points / (work.rows * work.columns);
  if (!f.reduce.empty()) work.channel = static_cast<double>(anchor.Extent(f.reduce.back()));
  if (f.row_axis < 0) return work;
  for (const auto& a : AccessesOf(w, anchor)) {
    if (a.linear[f.row_axis])
      work.row_stride_bytes = std::max(work.row_stride_bytes,
                                       static_cast<double>(ir::SizeOf(w.tensors[a.tensor].dtype) *
                                                           std::abs(a.stride[f.row_axis])));
  }
  return work;
}

}  // namespace

ClusterKind KindOf(const TraceWriter& writer, const Cluster& c) {
  const ir::Stage& owner = writer.stage(c.owner);
  if (owner.scan >= 0) return ClusterKind::kScan;
  if (c.anchor >= 0) return ClusterKind::kTile;
  if (!c.members.empty() || owner.combiner != ir::Combiner::kNone) return ClusterKind::kRows;
  return ClusterKind::kMap;
}

size_t Heaviest(const TraceWriter& writer, const std::vector<Cluster>& clusters) {
  size_t best = 0;
  for (size_t i = 1; i < clusters.size(); ++i) {
    if (WeightOf(writer, clusters[i]) > WeightOf(writer, clusters[best])) best = i;
  }
  return best;
}

CpuSubject::CpuSubject(const TraceWriter& writer, const std::vector<Cluster>& clusters,
                       const ir::Workload& w, const ir::Target& t, ir::AccuracyClass a)
    : workload(w), target(t), accuracy(a), input(FindInputStage(w)) {
  if (!clusters.empty() && writer.status().ok()) {
    cluster = clusters[Heaviest(writer, clusters)];
    kind = KindOf(writer, cluster);
    lanes = LanesFor(w.tensors[w.stages[cluster.owner].results[0]].dtype, t);
    tile = FormOf(writer, cluster, t);
    nominal = NominalTileOf(writer, cluster, t);
  }
  work = WorkOf(*this);
}

absl::Status EmitClusters(TraceWriter& writer, const Inlining& inlining, const ir::Target& target,
                          const std::function<void(const Cluster&)>& main) {
  const std::vector<Cluster> clusters = FindClusters(writer, inlining.keep, inlining.force);
  HONE_RETURN_IF_ERROR(writer.status());
  const size_t heaviest = clusters.empty() ? 0 : Heaviest(writer, clusters);
  std::vector<int> skipped = {inlining.skip};
  if (!clusters.empty() && KindOf(writer, clusters[heaviest]) == ClusterKind::kTile) {
    const TileForm form = FindTileForm(writer, clusters[heaviest], target);
    std::ranges::copy(PreparedInPanels(writer, form), std::back_inserter(skipped));
  }
  for (size_t i = 0; i < clusters.size(); ++i) {
    if (std::ranges::find(skipped, clusters[i].owner) != skipped.end()) continue;
    if (i == heaviest)
      main(clusters[i]);
    else
      ScheduleNominally(writer, clusters[i], target);
  }
  return writer.status();
}

absl::StatusOr<Cluster> MainCluster(TraceWriter& writer, const Inlining& inlining) {
  const std::vector<Cluster> clusters = FindClusters(writer, inlining.keep, inlining.force);
  HONE_RETURN_IF_ERROR(writer.status());
  if (clusters.empty()) return absl::InvalidArgumentError("there is nothing to schedule");
  return clusters[Heaviest(writer, clusters)];
}

void ScheduleNominally(TraceWriter& writer, const Cluster& c, const ir::Target& target) {
  const TileChoice nominal = NominalTileOf(writer, c, target);
  switch (KindOf(writer, c)) {
    case ClusterKind::kScan: return ScheduleScan(writer, c, nominal, target);
    case ClusterKind::kTile:
      return ScheduleTile(writer, FindTileForm(writer, c, target), nominal, Padding::kPeeled,
                          target);
    case ClusterKind::kRows: return ScheduleRows(writer, c, {.rows = nominal.rows}, target);
    case ClusterKind::kMap: return ScheduleMap(writer, c.owner, 1, target);
  }
}

TileChoice NominalTileOf(const TraceWriter& writer, const Cluster& c, const ir::Target& target) {
  if (KindOf(writer, c) == ClusterKind::kRows)
    return {.rows = NominalRowsAtATime(writer, c, target)};
  const TileForm form = FormOf(writer, c, target);
  return form.anchor < 0 ? TileChoice{} : NominalTile(writer, form, target);
}

void DescribeTile(const CpuSubject& subject, CpuFacts* facts) {
  if (subject.kind != ClusterKind::kTile) return DescribePass(subject, facts);
  facts->tiled = true;
  facts->work_rows = subject.work.rows;
  facts->work_outer = subject.work.outer;
  facts->work_reduce = subject.work.reduce;
  facts->multiply_adds = subject.work.multiply_adds;
  facts->phases = 1;
  const bool root = facts->padding == Padding::kRoot;
  facts->barriers = root ? 1 : 0;
  if (root || facts->padding == Padding::kTile)
    facts->l2_bytes = (root ? 2.0 : 3.0) * subject.work.input_bytes;
  if (facts->padding == Padding::kGuard && subject.tile.border)
    facts->operations = 0.03 * subject.work.multiply_adds;
}

void DescribePass(const CpuSubject& subject, CpuFacts* facts) {
  // A chain of dependent additions waits four cycles for each.
  facts->stall =
      subject.kind == ClusterKind::kRows
          ? 1 + 0.3 * std::max(0.0, 4.0 / static_cast<double>(facts->partial_vectors) - 1)
          : 1 + 0.05 * std::abs(std::log2(static_cast<double>(facts->unroll)) - 1);
}

}  // namespace hone::schedule
