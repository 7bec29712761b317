#pragma once

#include <cstdint>
#include <vector>

#include "costmodel/cuda/launch.h"
#include "ir/workload.h"
#include "schedule/structure.h"

namespace hone::costmodel {

/// The one launch of a cluster whose rows blocks share (schedule/cuda/rows.h), in closed forms.
/// Immutable.
class RowLaunch {
 public:
  /// `workload`: when Stages have been inlined.
  RowLaunch(const ir::Workload& workload, const schedule::Cluster& cluster);

  /// So many threads for a row, rows of a block, elements that a thread writes side by side.
  CudaLaunch Of(int64_t threads, int64_t rows, int64_t elements) const;

 private:
  struct Part {
    double elements = 1;  ///< of a row: reduced, or made
    double operations = 0;
    double given = 0, near = 0;  ///< loads from memory and from shared memory, for each element
    bool reduction = false;
    bool exchanged = false;  ///< a warp reduces a row without shared memory
  };
  std::vector<Part> parts_;
  double rows_ = 1, last_rows_ = 1, memory_bytes_ = 0, row_shared_bytes_ = 0;
};

}  // namespace hone::costmodel
