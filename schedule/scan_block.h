#pragma once

#include <vector>

#include "absl/status/statusor.h"

#include "ir/stmt.h"

namespace hone::schedule {

/// Whether threads of a GPU's block run this phase.
bool HasThreads(const ir::Phase& phase);

/// One phase for the steps of a scan: a loop over `repeats` around what its phases do, inside the
/// threads of one block. Barriers stand where a thread reads or overwrites what another one wrote
/// since the last; a phase without threads is left to the first. Fails for phases with blocks or
/// barriers of their own.
absl::StatusOr<ir::Phase> ScanInOneBlock(const std::vector<ir::Phase>& phases, int64_t repeats,
                                         const std::vector<ir::Buffer>& buffers);

}  // namespace hone::schedule
