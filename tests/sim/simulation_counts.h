#pragma once

#include "server/farm_view.h"

// What happened in a simulated farm.
namespace hone::sim {

/// The counts of one run, or of several together.
struct SimulationCounts {
  int restarts = 0, power_cuts = 0, worker_crashes = 0, breaks = 0, full_disks = 0;
  int condemned = 0, compared_restarts = 0, shared = 0, clock_jumps = 0;
  int artifacts_run = 0, bad_artifacts = 0;
  int parked = 0, confirmed = 0, compared = 0;
  int revoked = 0, drained = 0, cancelled = 0, late = 0, pauses = 0;
  int partitions = 0, suspensions = 0, deadlines = 0, retries = 0, watched = 0;
  server::FarmCounters farm;
};

}  // namespace hone::sim
