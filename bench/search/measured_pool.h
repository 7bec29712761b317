#pragma once

#include <cstddef>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "bench/search/model_tasks.h"
#include "bench/search/pool.h"
#include "ir/target.h"

namespace hone::bench {

/// Draws at most `candidates` points of the task's Space (DrawPoints) and measures each on this
/// machine as a search screens it. Points that were lost by no fault of theirs are left out.
absl::StatusOr<Pool> MeasurePool(const ModelTask& task, const ir::Target& target,
                                 size_t candidates, const MonotonicClock& clock);

}  // namespace hone::bench
