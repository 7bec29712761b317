#include "client/live_watch.h"

#include <thread>

#include "base/core/timed_wait.h"
#include "base/status.h"

namespace hone::client {
namespace {

constexpr int64_t kPatienceNs = 600'000'000'000;
constexpr int64_t kAnswerMs = 1000;

}  // namespace

void LiveWatch::Redraw(ServerProgress& progress) {
  std::unique_lock lock(mutex_);
  while (!WaitFor(changed_, lock, pace_.redraw_ns, [this] { return over_; })) view_.Show(progress);
}

void LiveWatch::Ask(const Hash128& session, ServerProgress& progress) {
  std::unique_lock lock(mutex_);
  while (!WaitFor(changed_, lock, pace_.ask_ns, [this] { return over_; })) {
    lock.unlock();
    const auto info = asked_.FindSession(session);
    lock.lock();
    progress.TakeRow(info);
  }
}

absl::Status LiveWatch::Run(const Hash128& session, ServerProgress& progress,
                            const ServerConnection::OnEvent& on_event,
                            const std::function<bool()>& stop, int64_t patience_ns) {
  std::thread drawer([&] { Redraw(progress); });
  // Apart: an answer may be long in coming, and the clock runs on.
  std::thread asker([&] { Ask(session, progress); });
  int64_t sequence = 0;
  const absl::Status watched = watched_.Watch(
      session, &sequence,
      [&](const proto::SessionEvent& event) {
        on_event(event);
        const std::lock_guard lock(mutex_);
        progress.Take(event);
        view_.Show(progress);
      },
      stop, patience_ns);
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  drawer.join();
  asker.join();
  view_.End(progress);
  return watched;
}

absl::Status WatchLive(CommandContext& context, const ServerAddress& address,
                       ServerConnection& watched, const Hash128& session, ServerProgress& progress,
                       const ServerConnection::OnEvent& on_event,
                       const std::function<bool()>& stop) {
  ServerAddress quick = address;
  quick.deadline_ms = kAnswerMs;
  quick.retry_for_ms = 0;
  HONE_ASSIGN_OR_RETURN(const auto asked, ServerConnection::Open(quick));
  return LiveWatch(context, watched, *asked, {})
      .Run(session, progress, on_event, stop, kPatienceNs);
}

}  // namespace hone::client
