#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "db/database.h"
#include "search/tuner.h"
#include "search/tuner_queue.h"

namespace hone::search {

/// A Tuner and the stream of its events in the log. Several sessions, each on threads of its own,
/// may be its members.
struct SharedTuner {
  SharedTuner(const ir::Target& target, const TunerOptions& options) : tuner(target, options) {}

  /// Held while the Tuner is used and until what happened to it is durable, so that the log has the
  /// events in the order in which they happened; those of `queue` alone come from elsewhere. All
  /// below it is guarded by it; take it by Lock or LockAll.
  std::mutex mutex;
  TunerQueue queue;
  /// With every event of the queue that is durable applied.
  [[nodiscard]] std::unique_lock<std::mutex> Lock() {
    std::unique_lock use(mutex);
    queue.ApplyTo(tuner);
    return use;
  }
  struct AllLocked {
    std::unique_lock<std::mutex> use, order;
  };
  /// For what has a place among the queue's events: with all of them applied, and none to come.
  [[nodiscard]] AllLocked LockAll() {
    AllLocked locked{std::unique_lock(mutex), queue.Hold()};
    queue.ApplyTo(tuner);
    return locked;
  }
  Tuner tuner;
  Hash128 stream;  ///< the session of the log whose events these are
  bool training = false;
  int64_t rows_at_training = 0;
  bool over = false;  ///< its last member has left: the next to join begins a new one
};

/// Applies the events of an earlier run to a fresh Tuner, the last of its models included.
absl::Status ReplayStream(db::Database& database, const std::vector<db::Event>& events,
                          SharedTuner& shared);

/// The searches that the sessions of a farm share: one for each request text, which names what
/// their members have in common (target, device class, accuracy). Thread-safe.
class SharedTuners {
 public:
  struct Request {
    std::string text;      ///< JSON; finds its unfinished stream in the log again
    std::string versions;  ///< JSON
    uint64_t seed = 0;
    ir::Target target;
    ir::AccuracyClass accuracy = ir::AccuracyClass::kDefault;
    int64_t now_ms = 0;
  };

  /// Sessions of an earlier start that go on: other members of a stored stream have ended.
  void GoOn(std::set<Hash128> sessions);
  /// The search of that request as the log has it, or a new one. A search that another version of
  /// Hone made begins anew. So does one during whose replay honed ended in two starts in a row: the
  /// fault may lie in another member than the one that asks.
  absl::StatusOr<std::shared_ptr<SharedTuner>> Get(db::Database& database, const Request& request);
  /// Durably ends a membership, wherever it is; one of a search that nobody has opened yet when it
  /// is opened. Nothing when there is none.
  absl::Status Leave(db::Database& database, const Hash128& member);
  /// Frees the searches whose last member has left.
  void ForgetEnded();
  size_t num_known() const;

 private:
  /// The search of one request. A replay takes seconds: those of others go on meanwhile.
  struct Slot {
    std::mutex mutex;                    ///< held while it is opened
    std::shared_ptr<SharedTuner> tuner;  ///< guarded by mutex
  };

  absl::StatusOr<std::shared_ptr<SharedTuner>> Open(db::Database& database,
                                                    const Request& request) const;
  std::vector<std::shared_ptr<Slot>> Slots() const;

  mutable std::mutex mutex_;
  std::set<Hash128> going_on_;                          // guarded by mutex_
  std::map<std::string, std::shared_ptr<Slot>> known_;  // guarded by mutex_
};

/// Takes a member out, adding the events of it; the caller holds the mutex and appends them.
void TakeOut(SharedTuner& shared, const Hash128& member, db::Batch& batch);

}  // namespace hone::search
