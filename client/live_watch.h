#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "client/server_connection.h"
#include "client/server_progress.h"

namespace hone::client {

/// Follows a session and shows its state, redrawn at intervals even when nothing happens. It also
/// shows why the session waits, which the session's row says and its events do not.
class LiveWatch {
 public:
  struct Pace {
    int64_t redraw_ns = 250'000'000;
    int64_t ask_ns = 2'000'000'000;  ///< for the row
  };
  /// `asked` answers beside `watched`, within a second or not at all. All must outlive it.
  LiveWatch(CommandContext& context, ServerConnection& watched, ServerConnection& asked, Pace pace)
      : watched_(watched), asked_(asked), pace_(pace), view_(context) {}

  /// As ServerConnection::Watch; the events also go to `progress`, which is the caller's again when
  /// this returns. The table is taken away then.
  absl::Status Run(const Hash128& session, ServerProgress& progress,
                   const ServerConnection::OnEvent& on_event, const std::function<bool()>& stop,
                   int64_t patience_ns);

 private:
  void Redraw(ServerProgress& progress);
  void Ask(const Hash128& session, ServerProgress& progress);

  ServerConnection& watched_;
  ServerConnection& asked_;
  const Pace pace_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;        // guarded by mutex_, as the progress
  ServerProgressView view_;  // guarded by mutex_ until the end
};

/// Has a LiveWatch on the server's session.
absl::Status WatchLive(CommandContext& context, const ServerAddress& address,
                       ServerConnection& watched, const Hash128& session, ServerProgress& progress,
                       const ServerConnection::OnEvent& on_event,
                       const std::function<bool()>& stop);

}  // namespace hone::client
