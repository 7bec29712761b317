#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/core/hash128.h"
#include "ir/target.h"
#include "proto/farm_messages.h"
#include "server/device_meter.h"
#include "server/farm_types.h"
#include "server/transitions.h"

// What a Farm knows of each attempt, lease, session, worker and project; farm.h changes it.
namespace hone::server {

/// A session's attempt whose worker was lost while it ran.
using Suspect = std::pair<Hash128, int64_t>;

/// One measurement that a session asked for.
struct FarmAttempt {
  AttemptState state = AttemptState::kWaiting;
  std::optional<proto::Job> job;  ///< none until the session's driver asked for it
  int losses = 0, faults = 0;
  bool condemned = false;
  std::string condemned_why;
  int64_t not_before_ns = 0;
  int64_t waiting_since_ns = 0;
  Hash128 token;  ///< kLeased, kAnswered by a worker
  std::optional<proto::WorkResult> result;
  bool delivered = false;
  JobHints hints;
  std::set<std::string> avoid;  ///< workers that shall not have it while others can
  std::string lost_with;        ///< the worker that was last lost while it ran
  int64_t lost_after = -1;      ///< that one's good_answers then; −1: not counted
  /// An answer that is believed when another device confirms it, and whose it was.
  std::optional<proto::WorkResult> doubtful;
  std::string doubted;
  bool too_fast = false;  ///< it is doubted for its speed: that device never confirms itself
  // For workers that run what others build:
  std::vector<std::string> keys;  ///< of its artifacts, as Grant.artifacts; made when needed
  int lost_builds = 0;  ///< build leases that ended with their worker, too late or without room
  int builds = 0;       ///< those that ended built; some artifacts were gone then
  int64_t build_ns = 0;
};

/// An answer that was too fast, since when it waits for another device.
struct FarmDoubt {
  Hash128 session;
  int64_t attempt = 0;
  int64_t since_ns = 0;
};

/// Bytes that stand in two sums, of all and of one name, for as long as this lives.
class CountedBytes {
 public:
  CountedBytes(int64_t& all, int64_t& of_name, int64_t bytes)
      : all_(all), of_name_(of_name), bytes_(bytes) {
    all_ += bytes_;
    of_name_ += bytes_;
  }
  CountedBytes(const CountedBytes&) = delete;
  CountedBytes& operator=(const CountedBytes&) = delete;
  ~CountedBytes() {
    all_ -= bytes_;
    of_name_ -= bytes_;
  }

 private:
  int64_t& all_;
  int64_t& of_name_;
  const int64_t bytes_;
};

/// A lease that has not ended.
struct OpenLease {
  Hash128 session;
  int64_t attempt = 0;
  std::string worker;  ///< key of workers_
  Hash128 instance;
  LeaseState state = LeaseState::kGranted;
  int64_t since_ns = 0;    ///< of the state
  int64_t granted_ns = 0;  ///< or, of an earlier start of honed, no later than that
  std::string content;     ///< digest of the result that came
  int64_t charge_ns = 0;
  bool alone = false;
  /// A result that came before the session's driver had asked for the attempt again, and when:
  /// what it is worth cannot be told without the job.
  std::optional<proto::WorkResult> parked;
  int64_t parked_ns = 0;
  std::vector<int> wanted;                 ///< of a build lease: Grant.wanted
  std::vector<proto::Artifact> artifacts;  ///< of a run lease: Grant.artifacts
  /// What came whole for a build lease, by SHA-256, and how much that is.
  std::map<std::string, std::shared_ptr<const std::string>> uploaded;
  int64_t uploaded_bytes = 0;
  std::vector<std::shared_ptr<const CountedBytes>> counted;
};

/// Its worker has answered: it can neither run late nor be lost with its worker.
inline bool HasAnswer(const OpenLease& lease) {
  return lease.state == LeaseState::kAnswered || lease.parked.has_value();
}

/// A session that has not ended.
struct FarmMember {
  SessionTerms terms;
  std::optional<ir::Target> target;  ///< its target, parsed
  bool begun = false;
  std::map<int64_t, FarmAttempt> attempts;
  std::set<int64_t> waiting;
  std::set<int64_t> ready;     ///< of these, whose artifacts are there: a run worker may have them
  std::set<int64_t> suspects;  ///< of the waiting ones, whose worker was lost while they ran
  int64_t building = 0;        ///< build leases
  int64_t leased = 0;
  int64_t deadline_ns = INT64_MAX;
};

/// FarmAttempt::condemned_why, and whose key it names; empty: nobody's, it is another's text.
std::string LossReason(int losses, const std::string& key, const std::string& why);
std::string LostWith(const std::string& reason);

/// A worker with one of its devices.
struct FarmWorker {
  std::string name;
  proto::Hello hello;
  std::optional<ir::Target> best;  ///< the device's target, parsed
  WorkerState state = WorkerState::kGone;
  std::optional<StreamId> stream;
  int64_t heard_ns = 0;  ///< or, when gone, since when
  int64_t link_ns = 0;   ///< since when its stream is up, or away
  int64_t leases_allowed = 0, leases_sent = 0;
  int64_t results_allowed = 0, results_received = 0;
  std::set<Hash128> leases;
  /// Other processes of its name and device that came while it lived: a cut of its link is no
  /// moment for them.
  std::set<Hash128> refused;
  DeviceState device = DeviceState::kActive;
  std::string reason;
  int64_t busy_ns = 0, results = 0;
  DeviceMeter meter;
  /// An artifact that is coming, up to now.
  struct Upload {
    Hash128 token;
    std::string sha256;
    int64_t total_bytes = 0;
    std::string data;
    std::shared_ptr<const CountedBytes> counted;
  };
  std::optional<Upload> upload;
  std::set<Hash128> failed_candidates;  ///< candidates good elsewhere that failed here
  /// Those that it was lost with and that ran well elsewhere, since its last good answer.
  std::set<Hash128> lost_in_row;
  int64_t good_answers = 0;
  int64_t sentinel_ns = 0;   ///< 0: it has told none
  bool own_class = false;    ///< drifted: measured as a class of its own
  std::string drift;         ///< says so
  bool probe_asked = false;  ///< by a person
  std::string unlike;        ///< its probe is far off its class's, and how
  uint64_t last_grant = 0;   ///< counter of its last token
  /// The process that said that a child of it cannot be killed.
  std::optional<Hash128> lost_instance;
  /// Gets nothing until it is empty, and then this suspect.
  std::optional<Suspect> reserved;
};

/// Leases that it would take now.
int64_t RoomOf(const FarmWorker& worker);
/// Outcomes that a lease to build can have, beside artifacts.
bool IsOfBuilding(measure::Outcome outcome);

/// What a project uses of the devices of one class. Each class has its own clock: device time of
/// one is worth nothing to who waits for another.
struct FarmClassUse {
  int64_t leased = 0;
  /// Device time by share since it last had nothing to do there; what is idle is lent, not saved
  /// up.
  double virtual_ns = 0;
  double mean_run_ns = 50e6;
};

/// What a project uses.
struct FarmProjectUse {
  int64_t share = 1;
  int64_t charged_ns = 0;
  int64_t leased = 0;
  std::map<std::string, FarmClassUse> classes;  ///< by the class that its sessions are bound to
};

}  // namespace hone::server
