#pragma once

#include <cstdint>

#include "schedule/sketch.h"

namespace hone::schedule {

/// Every Stage that is not inlined is a launch of its own, a thread for each element of its result,
/// or for a few that lie side by side; a thread reduces what its element needs. All Stages of a
/// scan are one launch of one block, whose threads take the elements of a step in turns. Every
/// Workload has this Sketch; the numbers are threads of a block and elements of a thread.
Sketch GridSketch(const ir::Workload& workload);

/// How many of a Stage's results one thread can take: so many, or the most below.
int64_t ElementsOf(const ir::Workload& workload, const ir::Stage& stage, int64_t wanted);

/// One Stage of it; `elements` or the most below that the Stage can take. A map's thread does that
/// `repeats` times, a block's width apart.
void ScheduleOnGrid(TraceWriter& writer, int stage, int64_t threads, int64_t elements,
                    int64_t repeats = 1);

/// Threads of the block that runs a scan, by the elements of a step.
int64_t ThreadsInScan(int64_t elements);

/// A reduction the same way; `last_slowest`: neighbours of a block are those of the axis before the
/// last.
void ScheduleReduction(TraceWriter& writer, int stage, int64_t threads, bool last_slowest);

inline constexpr int64_t kGridThreads = 256, kGridElements = 4;  ///< of the default

}  // namespace hone::schedule
