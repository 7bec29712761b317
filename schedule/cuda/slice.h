#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/cuda/product.h"
#include "schedule/trace_writer.h"

// What tiles of every kind have in common: the grid, and slices of factors in shared memory.
namespace hone::schedule {

/// "s0.i1" or "s0.r0": the loop of an axis of a Stage with so many spatial ones.
std::string LoopOfAxis(const std::string& stage, int spatial, int axis);

/// One factor's slice, rows of elements.
struct Slice {
  int tensor = -1;             ///< that the factor reads
  int outer = -1, inner = -1;  ///< axes of the Stage: rows of the slice, elements of a row
  bool along_inner = true;     ///< which of them neighbours in memory lie along
  /// Neighbours along a row that a thread brings together; 0: no thread brings them.
  int64_t lanes = 4;
  int64_t row_gap = 0;  ///< unused elements after each row
};

/// Brought at a loop of the Stage by all threads of the block, neighbours by neighbours.
void CopySlice(TraceWriter& writer, int stage, const std::string& at, const Slice& slice,
               int64_t threads_y, int64_t threads_x);

/// Binds what stands around a block: batches and tiles along rows to y of the grid, or batches to z
/// where they are too many (`along_z`), tiles along columns to x. Gives how many loops it has
/// fused, s0.f0 and so on.
int BindBlocks(TraceWriter& writer, int stage, const ProductAxes& axes, bool along_z);

}  // namespace hone::schedule
