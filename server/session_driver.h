#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "proto/farm_messages.h"
#include "search/shared_tuner.h"
#include "search/tuner.h"
#include "search/tuning_session.h"
#include "server/remote_measurer.h"
#include "server/session_log.h"
#include "server/space_turns.h"

namespace hone::server {

/// What a driver needs of honed; all must outlive it.
struct DriverContext {
  FarmLoop& loop;
  SharedReader& reader;
  const MonotonicClock& clock;
  const WallClock& wall_clock;
  std::string builder_version;
  std::string versions;                    ///< JSON for the log's session row
  search::SharedTuners* tuners = nullptr;  ///< set by the SessionBook
  SpaceTurns* turns = nullptr;             ///< likewise
};

/// Runs one accepted session on a thread of its own: search::TuningSession, the same that tunes on
/// one machine, over the farm as its Measurer, and a member of the search that all sessions of its
/// target, device class and accuracy share. Goes on where an earlier start of honed left it.
class SessionDriver {
 public:
  SessionDriver(const DriverContext& context, db::FarmSession row, proto::SessionSpec spec);
  /// Stops as Stop does.
  ~SessionDriver();

  /// Ends the session for good: its leases are taken back.
  void Cancel();
  /// Ends the thread; the session goes on with the next start.
  void Stop();

  /// On the loop: whether a cancel stands in the commit that is being prepared, which may still be
  /// refused. What would end the session otherwise waits for that.
  void SetCancelPrepared(bool prepared) { cancel_prepared_ = prepared; }

  void Deliver(int64_t attempt, const proto::WorkResult& result);

  /// Ended for good: finished, cancelled or failed, durably.
  bool ended() const { return ended_.load(); }
  /// Without its answers.
  proto::SessionInfo Info() const;
  /// Candidates whose answers are durable; nothing while that is not known without asking the log.
  std::optional<int64_t> answers() const;
  const Hash128& id() const { return id_; }
  const std::string& digest() const { return digest_; }
  const std::string& owner() const { return owner_; }

 private:
  void Run();
  /// Why the session ended, where an earlier honed wrote that down and died before the farm's row
  /// said so: it has left its search, and must not begin anew.
  absl::StatusOr<std::optional<std::string>> FinishedAs();
  /// kDeadlineExceeded: its date came first, or it waited for as long as it may tune.
  absl::Status ChooseDevice(proto::DeviceFacts* device);
  absl::Status Tune(const proto::DeviceFacts& device);
  /// Starts it when its turn has come, until when it has `count_fault`. kDeadlineExceeded: its date
  /// came first.
  absl::Status StartInTurn(search::TuningSession& session, std::vector<search::TuningTask> tasks,
                           SpaceTurns::CountFault& count_fault);
  absl::StatusOr<search::SessionOptions> OptionsFor(const proto::DeviceFacts& device) const;
  /// What its search shares with others: the same request text, the same search.
  search::SharedTuners::Request SharedRequest(const search::SessionOptions& options) const;
  bool DateHasCome() const;
  /// Until its date; infinite without one.
  double SecondsUntilDate() const;
  /// Tells the Farm when the session's time is over. Nothing where it never is.
  void SetDeadline(double seconds_left);
  void End(SessionTrigger event, const std::string& reason);
  void EndCancelled();
  /// Takes it out of its search, if it is in one.
  void LeaveSearch();
  /// kFailedPrecondition: it is being cancelled, which is all that may become of it.
  absl::Status Store(SessionTrigger event, const std::string& reason,
                     const proto::DeviceFacts* device);
  bool Interrupted() const { return interrupted_.load(); }

  const DriverContext context_;
  const proto::SessionSpec spec_;
  /// Others read these at any time, also while the row changes.
  const Hash128 id_;
  const std::string owner_, digest_, project_;
  mutable std::mutex mutex_;
  /// Without its spec. The thread alone changes it, and of it state, reason and device, under
  /// mutex_.
  db::FarmSession row_;
  std::unique_ptr<RemoteMeasurer> measurer_;
  bool cancel_prepared_ = false;  ///< the loop's alone
  std::atomic<bool> interrupted_{false}, cancelled_{false}, ended_{false};
  std::thread thread_;
};

/// What is told of a session; its attempts are counted elsewhere.
proto::SessionInfo InfoOf(const db::FarmSession& row, const proto::SessionSpec& spec);

/// The tasks of a request, parsed, verified, hashed and counted anew; nothing in it is trusted.
absl::StatusOr<std::vector<search::TuningTask>> TasksOf(const proto::SessionSpec& spec);

}  // namespace hone::server
