#include "db/database.h"

#include <tuple>
#include <utility>

#include "base/status.h"

namespace hone::db {

absl::StatusOr<std::optional<RankedRecord>> Database::BestRecord(const RecordQuery& query) {
  HONE_ASSIGN_OR_RETURN(std::vector<RankedRecord> top, TopRecords(query, 1));
  if (top.empty()) return std::optional<RankedRecord>();
  return std::optional<RankedRecord>(std::move(top.front()));
}

absl::StatusOr<std::vector<Event>> Database::EventsOf(const Hash128& session,
                                                      int64_t after_sequence) {
  std::vector<Event> events;
  const FactFilter filter{.session = session, .after_sequence = after_sequence};
  HONE_RETURN_IF_ERROR(ScanEvents(filter, [&](const Event& event) {
    events.push_back(event);
    return absl::OkStatus();
  }));
  return events;
}

absl::StatusOr<std::vector<StoredSession>> Database::Sessions() {
  std::vector<StoredSession> sessions;
  HONE_RETURN_IF_ERROR(ScanSessions([&](const StoredSession& session) {
    sessions.push_back(session);
    return absl::OkStatus();
  }));
  return sessions;
}

std::string IsaOfTarget(const std::string& target) {
  return target.substr(0, target.find(",threads="));
}

Rigor EffectiveRigor(const TuningRecord& record, bool merged, bool other_builder) {
  return merged || other_builder ? Rigor::kScreened : record.rigor;
}

bool Overrules(const RankedRecord& later, const RankedRecord& earlier) {
  const RecordKey &a = later.record.key, &b = earlier.record.key;
  return later.rigor == Rigor::kConfirmed && earlier.rigor == Rigor::kConfirmed &&
         a.workload == b.workload && a.target == b.target && a.device_class == b.device_class &&
         a.measurement_policy == b.measurement_policy && a.accuracy >= b.accuracy;
}

bool RanksBefore(const RankedRecord& a, const RankedRecord& b) {
  return std::tuple(-static_cast<int>(a.rigor), a.record.low_ns, a.record.id) <
         std::tuple(-static_cast<int>(b.rigor), b.record.low_ns, b.record.id);
}

}  // namespace hone::db
