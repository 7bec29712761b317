#include "server/space_turns.h"

#include <optional>

#include "fmt/format.h"

#include "base/core/timed_wait.h"
#include "base/log.h"
#include "base/status.h"

namespace hone::server {
namespace {

constexpr int64_t kLookNs = 100'000'000;

absl::StatusOr<int> FaultsOf(FarmLoop& loop, const Hash128& session) {
  int faults = 0;
  HONE_RETURN_IF_ERROR(loop.Run(
      {.prepare = [&](Farm&, db::FarmStore& store, db::FarmUnit&, int64_t) -> absl::Status {
        HONE_ASSIGN_OR_RETURN(const auto suspect, store.FindSuspect(session, db::kSpacesOfSession));
        faults = suspect ? suspect->losses : 0;
        return absl::OkStatus();
      }}));
  return faults;
}

absl::Status Store(FarmLoop& loop, const db::FarmChange& change) {
  return loop.Run({.prepare = [&](Farm&, db::FarmStore&, db::FarmUnit& unit, int64_t) {
    unit.changes.push_back(change);
    return absl::OkStatus();
  }});
}

}  // namespace

SpaceTurns::Turn::~Turn() {
  if (of == nullptr) return;
  const std::lock_guard lock(of->mutex_);
  of->taken_ = false;
  of->changed_.notify_all();
}

absl::Status SpaceTurns::Run(FarmLoop& loop, const Hash128& session, const Ended& ended,
                             const Work& work) {
  HONE_ASSIGN_OR_RETURN(const int faults, FaultsOf(loop, session));
  if (faults >= kMostFaults) {
    return absl::FailedPreconditionError(fmt::format(
        "honed has ended {} times while it prepared the search of this session's tasks, which it "
        "does not try again: one of them may need more memory or time than honed has, or be a "
        "fault of Hone. What honed or the system last said stands in honed's log; to find the "
        "task, ask for fewer at once, and report it",
        faults));
  }
  Turn turn;
  if (faults > 0) {
    LogWarning(
        "session {}: honed ended while it prepared its search (fault {} of {}); it is "
        "prepared alone among such",
        session.ToHex(), faults, kMostFaults);
    std::unique_lock lock(mutex_);
    while (!WaitFor(changed_, lock, kLookNs, [this] { return !taken_; })) {
      HONE_RETURN_IF_ERROR(ended());
    }
    taken_ = true;
    turn.of = this;
  }
  bool counted = faults > 0;
  const absl::Status status = work([&] {
    counted = true;
    return Store(loop, db::PutFarmSuspect{{.session = session,
                                           .attempt = db::kSpacesOfSession,
                                           .losses = faults + 1,
                                           .reason = "its Spaces are computed"}});
  });
  if (!counted) return status;
  const absl::Status forgotten = Store(loop, db::DropFarmSuspect{session, db::kSpacesOfSession});
  return status.ok() ? forgotten : status;
}

}  // namespace hone::server
