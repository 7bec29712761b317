#pragma once

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "db/database.h"
#include "db/record.h"

// Winners that were measured anew because what measures has changed (a GPU's driver, a kernel of
// the system): an event of the log.
namespace hone::db {

/// These records of a Workload answer no look-up any more; newer ones of the same key do. What was
/// merged from another log says so of merged records alone.
struct Recheck {
  Hash128 workload;
  std::vector<Hash128> replaced;
  // Where it stands; not in the event's payload.
  Hash128 session;
  bool merged = false;

  bool operator==(const Recheck&) const = default;
};

/// Event::type of a recheck.
inline constexpr char kRecheck[] = "recheck";

/// The event of a recheck. Its id begins with the Workload's hash, so that the log finds all of a
/// Workload by their ids.
Event EventOf(const Recheck& recheck);
/// Ids of a Workload's rechecks lie between these two.
std::pair<Hash128, Hash128> RecheckIds(const Hash128& workload);
/// The inverse of EventOf; nothing where the event is none, or one of a newer Hone.
std::optional<Recheck> RecheckOf(const Event& event, bool merged);

/// The records that rechecks replace.
class ReplacedRecords {
 public:
  void Add(const Recheck& recheck);
  bool Contains(const Hash128& record, bool merged) const;

 private:
  std::set<Hash128> all_, merged_;
};

/// All that a log's rechecks replace. Errors of the log.
absl::StatusOr<ReplacedRecords> ReplacedOf(Database& database);

}  // namespace hone::db
