#pragma once

#include <cstdint>
#include <vector>

#include "ir/workload.h"
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

/// A load in a Stage's body and how far one step along each axis moves it; `linear` false: no
/// constant stride.
struct Access {
  int tensor = -1;
  std::vector<ir::Expr> indices;
  std::vector<int64_t> stride;  ///< elements, per axis of the Stage
  std::vector<bool> linear;     ///< per axis
  bool guarded = false;         ///< stands under a select
  bool DependsOn(int axis) const { return !linear[axis] || stride[axis] != 0; }
};
std::vector<Access> AccessesOf(const ir::Workload& workload, const ir::Stage& stage);
Role RoleOf(const ir::Workload& workload, const ir::Stage& stage);

/// Arithmetic operations per evaluation of the bodies; transcendental ones count 16.
int64_t CostOf(const ir::Stage& stage);
/// Whether the bodies compute anything with floats, beyond choosing what to load.
bool Computes(const ir::Stage& stage);
/// The spatial axis that vectors run along: the last one with more than one element, or, when that
/// one is short, the innermost of the store map; -1 when there is none.
int VectorAxis(const ir::Stage& stage);

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

/// The Stage that prepares the input of reductions with reuse, and which only they read: a guarded
/// copy (padding), or a map that computes (normalisation, scaling); -1 when there is none.
int FindInputStage(const ir::Workload& workload);

}  // namespace hone::schedule
