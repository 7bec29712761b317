#pragma once

#include "costmodel/cuda/launch.h"
#include "ir/workload.h"
#include "schedule/cuda/group_tile.h"
#include "schedule/cuda/tile.h"
#include "schedule/cuda/warp_tile.h"

namespace hone::costmodel {

/// The launch of a sum of products as tiles (schedule/cuda/tile.h, warp_tile.h, group_tile.h), its
/// epilogue within, in closed forms. Immutable.
class TileLaunch {
 public:
  /// `workload`: when products have been prepared.
  TileLaunch(const ir::Workload& workload, const schedule::Product& product);

  CudaLaunch Of(const schedule::BlockTile& tile) const;
  /// By tensor cores (warp_launch.cc).
  CudaLaunch Of(const schedule::WarpTile& tile) const;
  /// By warpgroups (group_launch.cc).
  CudaLaunch Of(const schedule::GroupTile& tile) const;
  const schedule::ProductAxes& axes() const { return axes_; }

 private:
  /// What it takes to store a result: sectors for one that is filled, instructions of a lane,
  /// wavefronts of a warp's lanes each.
  struct Stored {
    double sectors = 1, instructions = 1, wavefronts = 0;
  };
  Stored StoredBy(const schedule::WarpTile& tile) const;
  double SlicePasses(const schedule::BlockTile& tile) const;
  double element_bytes() const { return static_cast<double>(axes_.number_bytes); }

  schedule::ProductAxes axes_;
  bool boxes_ = false;       ///< slices may come as boxes
  double memory_bytes_ = 0;  ///< of all tensors that are read or written, each once
  double result_bytes_ = 0;  ///< written, and read by the epilogue
  double stored_bytes_ = 4;  ///< of one result
  double operations_ = 0;    ///< of the epilogue, for each result
  double first_operations_ = 0, second_operations_ = 0;  ///< for each element that is brought
  bool first_copied_ = false, second_copied_ = false;    ///< brought as they are, or not at all
};

}  // namespace hone::costmodel
