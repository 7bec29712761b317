#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "ir/target.h"
#include "schedule/sketch.h"
#include "schedule/structure.h"

namespace hone::schedule {

/// The clusters of inlined Stages whose rows the threads of a block share: a map with reductions of
/// its rows (softmax, norms). A reduction that no map follows has too few results for its threads.
/// `keep`: Stages that are not inlined.
std::vector<Cluster> RowClusters(TraceWriter& writer, const std::set<int>& keep);

/// The numbers of the default, for all clusters; nothing where no block can hold their rows.
std::optional<Values> NominalRows(const TraceWriter& writer, const std::vector<Cluster>& clusters);
/// Schedules one cluster.
void ScheduleRow(TraceWriter& writer, const Cluster& cluster, const Values& numbers);

/// Threads of a warp, in which lanes combine what they have without shared memory.
inline constexpr int64_t kWarpThreads = 32;
/// Whether so many threads reduce a row of this Stage as lanes: they are a warp, and the numbers
/// such that lanes exchange them.
bool ReducedByLanes(const ir::Workload& workload, const ir::Stage& stage, int64_t threads);

/// A block makes a row or a few: each thread reduces every so many-th element of a row. What they
/// found meets in the lanes of a warp where the row belongs to one, else in shared memory. The
/// numbers are threads of a row, rows of a block, and the elements that lie side by side of what a
/// thread writes. What is no row is a tile or a grid as by default. Nothing where no cluster has
/// rows.
std::optional<Sketch> RowsSketch(const ir::Workload& workload, const ir::Target& target);

}  // namespace hone::schedule
