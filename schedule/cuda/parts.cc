#include "schedule/cuda/parts.h"

#include <algorithm>
#include <set>

#include "schedule/cuda/grid.h"
#include "schedule/cuda/warp_tile.h"

namespace hone::schedule {

CudaParts PartsOf(TraceWriter& writer, int64_t partials, int64_t cuts) {
  CudaParts parts;
  const std::set<int> inputs = WindowInputs(writer.workload());
  parts.rows = RowClusters(writer, inputs);
  std::set<int> taken;
  for (const Cluster& cluster : parts.rows) {
    taken.insert(cluster.owner);
    taken.insert(cluster.members.begin(), cluster.members.end());
  }
  parts.products = PrepareProducts(writer, taken, cuts);
  for (const Product& product : parts.products) taken.insert(product.stage);
  parts.windows = PrepareWindows(writer, taken, inputs);
  for (const Window& window : parts.windows) {
    taken.insert(window.stage);
    if (window.input >= 0) taken.insert(window.input);
  }
  const auto others = [&] {
    std::vector<int> left;
    for (const int id : LaunchedStages(writer)) {
      if (!taken.contains(id)) left.push_back(id);
    }
    return left;
  };
  const std::vector<int> before = others();
  for (const LongSum& sum : LongSums(writer, before)) {
    const int made = FactorSum(writer, sum, partials, before);
    if (made < 0) break;  // the writer says why
    parts.partials.push_back({made, sum.stage, writer.stage(made).spatial.back(), sum.along});
    taken.insert(made);
  }
  parts.others = others();
  return parts;
}

void ScheduleNominal(TraceWriter& writer, const Product& product, const ir::CudaTarget& card) {
  if (const auto cores = NominalWarpTile(product.axes, card))
    ScheduleWarpTile(writer, product.stage, product.axes, *cores);
  else if (const auto tile = NominalBlock(product.axes, card))
    ScheduleProduct(writer, product.stage, product.axes, *tile);
  else
    ScheduleOnGrid(writer, product.stage, kGridThreads, kGridElements);
}

void ScheduleProducts(TraceWriter& writer, const CudaParts& parts, const ir::CudaTarget& card) {
  for (const Product& product : parts.products) ScheduleNominal(writer, product, card);
}

void ScheduleRows(TraceWriter& writer, const CudaParts& parts) {
  const auto numbers = NominalRows(writer, parts.rows);
  for (const Cluster& cluster : parts.rows) {
    if (numbers) {
      ScheduleRow(writer, cluster, *numbers);
      continue;
    }
    for (const int id : cluster.members) ScheduleOnGrid(writer, id, kGridThreads, kGridElements);
    ScheduleOnGrid(writer, cluster.owner, kGridThreads, kGridElements);
  }
}

void ScheduleNominal(TraceWriter& writer, const Window& window, const ir::CudaTarget& card) {
  const auto tile = NominalWindow(window.axes, card.multiprocessors);
  if (tile) ScheduleWindow(writer, window, *tile);
}

void ScheduleOthers(TraceWriter& writer, const CudaParts& parts, const ir::CudaTarget& card) {
  for (const Window& window : parts.windows) ScheduleNominal(writer, window, card);
  ScheduleRest(writer, parts);
}

void ScheduleRest(TraceWriter& writer, const CudaParts& parts) {
  for (const CudaParts::Partial& partial : parts.partials)
    ScheduleReduction(writer, partial.stage, kGridThreads, !partial.along);
  for (const int id : parts.others) {
    if (SummedByLanes(writer, id, PartialsOf(parts, id)))
      ScheduleOnLanes(writer, id);
    else
      ScheduleOnGrid(writer, id, kGridThreads, kGridElements);
  }
}

int64_t PartialsOf(const CudaParts& parts, int stage) {
  for (const CudaParts::Partial& partial : parts.partials) {
    if (partial.sum == stage) return partial.count;
  }
  return 0;
}

}  // namespace hone::schedule
