#pragma once

#include "costmodel/cuda/launch.h"
#include "ir/workload.h"
#include "schedule/cuda/window_tile.h"

namespace hone::costmodel {

/// The launch of a window as tiles (schedule/cuda/window_tile.h), its epilogue within, in closed
/// forms. Immutable.
class WindowLaunch {
 public:
  /// `workload`: when windows have been prepared.
  WindowLaunch(const ir::Workload& workload, const schedule::Window& window);

  CudaLaunch Of(const schedule::WindowTile& tile) const;
  const schedule::WindowAxes& axes() const { return axes_; }

 private:
  /// Reads of the box that a thread makes, each of neighbours.
  double ReadsOf(const schedule::WindowTile& tile) const;
  /// Wavefronts of one such read of a warp.
  double Passes(const schedule::WindowTile& tile) const;

  schedule::WindowAxes axes_;
  double taps_ = 1;              ///< iterations of a result
  double operations_ = 0;        ///< of one
  double constants_ = 0;         ///< other loads of one
  double constant_bytes_ = 0;    ///< of those, for a result along the fast axis, all taps
  double bring_operations_ = 0;  ///< for an element of the box
  double epilogue_operations_ = 0;
  double memory_bytes_ = 0, result_bytes_ = 0;
};

}  // namespace hone::costmodel
