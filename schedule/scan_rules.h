#pragma once

#include <vector>

#include "absl/status/status.h"

#include "schedule/schedule.h"

// Scans: the iterations t of a region follow each other, whatever else is reordered.
namespace hone::schedule {

/// The leaves that the sequential axis of a scan's Stage was split into, outer to inner.
std::vector<int> LeavesOfT(const StageSchedule& schedule);

/// Whether one iteration's values of this carried tensor may overwrite those of the one before: a
/// map at root that owns the loops of its scan makes it, each point reads only itself of the
/// iteration before, and outside of the scan only the last iteration is read, or the last that
/// changes the point. Only for tensors so large that the caches feel it.
bool MayOverwrite(const Schedule& schedule, int tensor);

/// Whether the Schedule keeps the order of every scan's iterations and computes its Stages where
/// that can be done.
absl::Status CheckScans(const Schedule& schedule, const std::vector<int>& stage_order);

}  // namespace hone::schedule
