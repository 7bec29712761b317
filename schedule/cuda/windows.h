#pragma once

#include <optional>

#include "ir/target.h"
#include "schedule/sketch.h"

namespace hone::schedule {

/// Windows as tiles (window_tile.h), the rest as by default. The numbers are the threads of a block
/// and the points of a thread. Nothing where no Stage is a window.
std::optional<Sketch> WindowsSketch(const ir::Workload& workload, const ir::Target& target);

}  // namespace hone::schedule
