#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "server/farm_loop.h"

namespace hone::server {

/// Lets sessions compute the Spaces of the Workloads that clients send, each counted as
/// a fault until it ends, durably. What such a computation does to honed (memory, time, a crash) it
/// would do again after every restart: a session that honed died of too often is refused, and all
/// others go on. Sessions with a fault take turns one at a time, so that of those which computed
/// together when honed died, only the guilty one gets another fault. Thread-safe.
class SpaceTurns {
 public:
  /// A session's first turn and those after two restarts.
  static constexpr int kMostFaults = 3;

  /// Counts a fault of the session; its work calls it before it computes what is the session's own,
  /// as often as it likes.
  using CountFault = std::function<absl::Status()>;
  using Work = std::function<absl::Status(const CountFault&)>;

  /// Why the session waits no longer; ok: it does. Asked again and again while others go first.
  using Ended = std::function<absl::Status()>;

  /// The status of `work`, after which the session's faults are forgotten. kFailedPrecondition,
  /// without it: it has kMostFaults. What `ended` says, without it: it ended while others went
  /// first.
  absl::Status Run(FarmLoop& loop, const Hash128& session, const Ended& ended, const Work& work);

 private:
  /// The turn of a session that has a fault; ends with this object.
  struct Turn {
    SpaceTurns* of = nullptr;
    ~Turn();
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  bool taken_ = false;  // guarded by mutex_
};

}  // namespace hone::server
