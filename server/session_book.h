#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "proto/limits.h"
#include "server/recent_map.h"
#include "server/session_driver.h"

namespace hone::server {

/// All sessions of a honed: accepts, joins, cancels and resumes them. Thread-safe.
class SessionBook {
 public:
  explicit SessionBook(const DriverContext& context) : context_(context) {
    context_.tuners = &tuners_;
    context_.turns = &turns_;
  }
  /// Stops every driver; their sessions go on with the next start.
  ~SessionBook();

  /// Takes up what an earlier start left, before anybody is listened to. One whose request this
  /// version cannot read fails alone.
  absl::Status Resume(const std::vector<db::FarmSession>& sessions);

  struct Started {
    Hash128 id;
    bool joined = false;
  };
  /// Who asks: the identity, and the request's own id. A retry gets the first answer; the same id
  /// with another body is kAlreadyExists.
  struct Request {
    std::string caller, id;
  };
  absl::StatusOr<Started> Start(const Request& request, const proto::SessionSpec& spec);
  /// `actor`: who asks, for the audit.
  absl::Status Cancel(const Request& request, const Hash128& session, bool any_owner,
                      const std::string& actor);
  void StopAll();

  /// kNotFound: no such session. `owner` empty: anybody's.
  absl::StatusOr<proto::SessionInfo> Find(const Hash128& session, const std::string& owner);
  /// A session as it was asked for, and its row, under the same conditions.
  struct Asked {
    db::FarmSession row;  ///< without its spec
    proto::SessionSpec spec;
  };
  absl::StatusOr<Asked> FindAsked(const Hash128& session, const std::string& owner);
  /// Whether it has ended, durably; without a look at the log while it runs.
  absl::StatusOr<bool> Over(const Hash128& session);
  /// Newest first.
  absl::StatusOr<std::vector<proto::SessionInfo>> List(int limit, const std::string& owner,
                                                       const std::optional<Hash128>& after = {});
  /// The next events of a session, oldest first; they are durable.
  absl::StatusOr<std::vector<proto::SessionEvent>> EventsAfter(const Hash128& session,
                                                               int64_t sequence, int limit);

  /// An event of a session by its id; reads all of the session's.
  absl::StatusOr<std::optional<db::Event>> FindEvent(const Hash128& session, const Hash128& id);

  void Deliver(const Delivery& delivery);

 private:
  void Forget();
  /// Candidates of a session that were answered, durably. Counted beside the loop, and only where
  /// neither its driver knows nor an earlier call: that may be tens of thousands of leases.
  absl::StatusOr<int64_t> AnswersOf(const db::FarmSession& row);
  /// Why a session is as it is, or waits: its row's, its driver's, or that nothing can be written.
  std::string ReasonOf(const db::FarmSession& row);
  /// With its spec; read beside the loop, which has better to do.
  absl::StatusOr<std::optional<db::FarmSession>> StoredRow(const Hash128& session);
  /// The info of a row without its spec, which is read once and never kept.
  absl::StatusOr<proto::SessionInfo> ListedInfo(const db::FarmSession& row);
  void SetCancelPrepared(const Hash128& session, bool prepared);
  void ForgetRunning(const SessionDriver& driver);
  /// Ends one that cannot be resumed, durably.
  absl::Status GiveUp(const db::FarmSession& row, const absl::Status& why);

  search::SharedTuners tuners_;
  SpaceTurns turns_;
  DriverContext context_;
  std::mutex mutex_;
  std::map<Hash128, std::unique_ptr<SessionDriver>> drivers_;  // guarded by mutex_
  /// Lists ask for these again and again; what is not kept is read again.
  static constexpr size_t kMostRecent = size_t{4} * proto::kMaxListed;
  RecentMap<Hash128, int64_t> ended_answers_{kMostRecent};  // guarded by mutex_
  /// What lists say of a request; it never changes.
  struct Listed {
    std::string model, target;
    int tasks = 0;
  };
  RecentMap<Hash128, Listed> asked_{kMostRecent};  // guarded by mutex_
  bool stopped_ = false;                           // guarded by mutex_
  /// Digest and owner of sessions that run, and of those being accepted; the loop's alone.
  std::map<std::string, Hash128> running_;
  std::set<std::string> accepting_;
};

/// An event of the log as watchers see it; nothing for those that are none of their business.
std::optional<proto::SessionEvent> EventOf(const db::Event& event);

}  // namespace hone::server
