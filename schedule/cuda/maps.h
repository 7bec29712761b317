#pragma once

#include <optional>

#include "schedule/sketch.h"

namespace hone::schedule {

/// A grid (grid.h) whose maps give a thread several groups of neighbours, a block's width apart, so
/// that more is asked of memory at once. The numbers are threads of a block, elements side by side,
/// and groups. Nothing where no Stage is a map with many elements.
std::optional<Sketch> MapsSketch(const ir::Workload& workload);

}  // namespace hone::schedule
