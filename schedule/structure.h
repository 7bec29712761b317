#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "ir/workload.h"
#include "schedule/access.h"
#include "schedule/trace_writer.h"

namespace hone::schedule {

/// What kind of loop nest a Stage is, from its reduction and the strides of its loads, never from
/// an operator's name.
enum class Role : uint8_t {
  kMap,          ///< no reduction
  kContraction,  ///< sum of products in which some axis is read by one factor only (reuse in
                 ///< registers)
  kWindow,       ///< reduction whose vectors run along the result's last axis (depthwise, pooling,
                 ///< column sums)
  kRow,          ///< reduction along the contiguous axis of what it reads
};

Role RoleOf(const ir::Workload& workload, const ir::Stage& stage);

/// The spatial axis along which a map's results are contiguous in memory, or nearly; the axis along
/// which a reduction's factors are, or along which only some of a product's factors move: there
/// vectors run. -1 when no axis has more than one element.
int VectorAxis(const ir::Workload& workload, const ir::Stage& stage);

/// One root Stage with what is computed inside it.
struct Cluster {
  int owner = -1;
  int anchor =
      -1;  ///< reduction computed in the owner's register tile (or the owner itself); -1: none
  std::vector<int> members;  ///< computed at the owner's row loop, producers first
  int row_axes = 0;          ///< members are attached inside this many leading axes of the owner
};

/// Inlines what is better computed where it is read, then says which Stages own loops and what is
/// computed inside them. The result's clusters are in topological order. `keep` (a Stage, or -1) is
/// not inlined, `force` (a Stage, or -1) is.
std::vector<Cluster> FindClusters(TraceWriter& writer, int keep, int force);
/// The same with several Stages that are not inlined.
std::vector<Cluster> FindClusters(TraceWriter& writer, const std::set<int>& keep, int force);

/// The Stage that prepares the input of reductions with reuse, and which only they read: a guarded
/// copy (padding), or one that IsCostlyInput; -1 when there is none.
int FindInputStage(const ir::Workload& workload);
/// Whether a Stage that prepares an input computes (normalisation, scaling) or transposes, so that
/// reductions that read an element often should not repeat it.
bool IsCostlyInput(const ir::Workload& workload, int stage);

}  // namespace hone::schedule
