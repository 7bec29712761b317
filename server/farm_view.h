#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/core/hash128.h"
#include "measure/outcome.h"
#include "proto/farm_messages.h"

// A Farm at one moment, as plain values: what metrics and the page show.
namespace hone::server {

/// Counted since the start.
struct FarmCounters {
  int64_t granted = 0, results = 0, acknowledged = 0;
  int64_t duplicates = 0, conflicts = 0, stale = 0, invalid = 0;
  int64_t expired = 0, returned = 0, revoked = 0, lost = 0, condemned = 0;
  int64_t refused_workers = 0, replaced_streams = 0, infrastructure_faults = 0;
  int64_t quarantined = 0, held_back = 0;
  /// Build leases granted; artifacts that came, that were refused, for which there was no room,
  /// that came without a lease, and that were gone when somebody wanted to run them.
  int64_t granted_builds = 0, artifacts = 0;
  int64_t artifacts_refused = 0, artifacts_no_room = 0, artifacts_unasked = 0, artifacts_gone = 0;
  /// Attempts closed durably, by how they ended.
  std::array<int64_t, measure::kNumOutcomes> outcomes{};
};

struct DeviceView {
  proto::DeviceInfo info;
  double busy_share = -1;  ///< of the last minute, 0 to 1; negative: not known
  double noise = -1;       ///< DeviceMeter::noise
  int64_t noisy_results = 0;
  int started = 0;       ///< leases whose code runs
  int64_t quiet_ns = 0;  ///< since its last word
};

struct ProjectView {
  std::string name;
  int64_t share = 1, charged_ns = 0, leased = 0;
};

/// A session that has begun and not ended.
struct OpenSessionView {
  int64_t left_ns = -1;  ///< until its deadline, at least 0; negative: it has none
  std::string waits;     ///< why nothing can be measured for it; empty: it can
};

struct FarmView {
  int64_t taken_ns = 0;  ///< on honed's monotonic clock; 0: none was taken yet
  FarmCounters counters;
  std::vector<DeviceView> devices;
  std::vector<ProjectView> projects;
  std::map<Hash128, OpenSessionView> sessions;
  int64_t waiting = 0;            ///< attempts that no worker has
  int64_t oldest_waiting_ns = 0;  ///< how long the oldest of them waits
  int64_t open_leases = 0, started_leases = 0;
};

}  // namespace hone::server
