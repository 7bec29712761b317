#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/cuda/cuda_target.h"
#include "schedule/trace_writer.h"

// A reduction whose neighbouring results read overlapping parts of a tensor (depthwise convolutions
// and those of narrow groups, pooling) on a grid: a block makes a box of the result, and what the
// box reads, its halo and padding included, lies in shared memory, brought once.
namespace hone::schedule {

/// The axes of such a Stage, and what it slides over.
struct WindowAxes {
  /// What a point reads along one dimension of the tensor.
  struct Dimension {
    int axis = -1;      ///< spatial axis that moves it; -1: none
    int64_t step = 0;   ///< by so much, at each `group`-th iteration
    int64_t group = 1;  ///< results that read the same
    int64_t reach = 1;  ///< places from the first to the last that a point reads

    /// At most so many places are read by so many neighbours.
    int64_t Width(int64_t points) const;
  };
  int tensor = -1;
  std::vector<Dimension> dimensions;
  int fast = -1;            ///< spatial axis along which neighbours lie side by side
  int near = -1, far = -1;  ///< others, sliding ones where there are some; `far` may be -1
  std::vector<int> others;
  int64_t fast_extent = 1, near_extent = 1, far_extent = 1, batches = 1;
  int64_t lanes = 1;  ///< neighbours along `fast` that one thread makes
  int64_t number_bytes = 4;
};

/// Nothing where the Stage is no such reduction.
std::optional<WindowAxes> FindWindow(const ir::Workload& workload, const ir::Stage& stage);

/// The numbers of a tile. A thread makes `rows` by `columns` vectors of neighbours.
struct WindowTile {
  int64_t threads_x = 8, threads_y = 16, columns = 1, rows = 1;

  int64_t threads() const { return threads_x * threads_y; }
  /// How far the box reaches along an axis.
  int64_t Points(const WindowAxes& axes, int axis) const;
  int64_t blocks(const WindowAxes& axes) const;
  /// What a block reads, in elements.
  int64_t halo(const WindowAxes& axes) const;
  int64_t shared_bytes(const WindowAxes& axes) const;
  /// Why it is no tile of this Stage; empty: it is one.
  std::string_view Misfit(const WindowAxes& axes, int64_t most_shared_bytes) const;
};

/// What tables offer.
struct WindowThreads {
  int64_t x, y;
};
const std::vector<WindowThreads>& WindowBlocks();
/// The largest tile of a thread that gives every multiprocessor a block; where none does, the one
/// with most blocks. It takes no more shared memory than every chip gives a block. Nothing where
/// none fits.
std::optional<WindowTile> NominalWindow(const WindowAxes& axes, int64_t multiprocessors);

/// A Stage that will be such tiles.
struct Window {
  int stage = -1;
  WindowAxes axes;
  int input = -1;     ///< the map that makes what it slides over, in the tile; -1: that is copied
  int epilogue = -1;  ///< the map that its tiles are stored through; -1: none
};

/// Maps that windows alone read, which are not to be inlined: a padding and what comes before it.
std::set<int> WindowInputs(const ir::Workload& workload);
/// Makes the windows among the live Stages ready: constants are laid out along the fast axis, a map
/// that alone reads the result is its epilogue, and `inputs` without a tile are inlined. `taken`:
/// Stages that are left as they are.
std::vector<Window> PrepareWindows(TraceWriter& writer, const std::set<int>& taken,
                                   const std::set<int>& inputs);

/// Schedules a root Stage.
void ScheduleWindow(TraceWriter& writer, const Window& window, const WindowTile& tile);
/// The tile from which ScheduleWindow wrote the loops of the Stage of this name.
std::optional<WindowTile> ReadWindow(const Trace& trace, const std::string& stage,
                                     const WindowAxes& axes);

}  // namespace hone::schedule
