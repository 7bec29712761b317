#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/cuda/launch.h"
#include "schedule/access.h"
#include "schedule/space.h"

// The launches that the rules of schedule/cuda make of a Workload's Stages, in closed forms.
namespace hone::costmodel {

/// A Stage that is a launch of its own, by what no candidate changes. Immutable.
class StageLaunches {
 public:
  /// `workload` and `stage` as they are when Stages have been inlined. `last_slowest`: neighbours
  /// of a block are those of the axis before the last (schedule/cuda/grid.h).
  StageLaunches(const ir::Workload& workload, const ir::Stage& stage, bool last_slowest = false);

  /// A thread for each result or for `elements` of them (schedule/cuda/grid.h), of maps for
  /// `groups` of so many (schedule/cuda/maps.h).
  CudaLaunch OnGrid(int64_t threads, int64_t elements, int64_t groups = 1) const;

  /// A warp for each result, so many in a block, whose lanes read what it reduces side by side
  /// (schedule/cuda/sums.h).
  CudaLaunch OnLanes(int64_t warps) const;

  bool is_map() const { return map_; }
  double results() const { return results_; }
  double points() const { return results_ * reduced_; }

 private:
  struct Load {
    schedule::Access access;
    double bytes = 4;  ///< of an element
    double tensor_bytes = 0;
    bool reduced = false;  ///< read anew in each iteration of a reduction
    double reuse = 1;      ///< iterations that read one sector
  };
  WarpAccess WarpOf(const Load& load, int64_t elements) const;
  int64_t OffsetOf(const Load& load, int64_t result) const;

  std::vector<int64_t> spatial_;
  bool last_slowest_ = false;
  std::vector<Load> loads_;
  double operations_ = 0;  ///< a point
  double results_ = 1, reduced_ = 1, result_bytes_ = 0;
  bool map_ = true;
  bool one_thread_ = false;
  double steps_ = 0;  ///< of a scan
  int64_t most_elements_ = 1;
};

}  // namespace hone::costmodel
