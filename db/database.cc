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
  if (record.rigor == Rigor::kPredicted) return record.rigor;
  return merged || other_builder ? Rigor::kScreened : record.rigor;
}

bool RanksBefore(const RankedRecord& a, const RankedRecord& b) {
  const auto place = [](const RankedRecord& r) {
    const int rigor = r.rigor == Rigor::kPredicted ? -1 : static_cast<int>(r.rigor);
    return std::tuple(-rigor, r.record.low_ns, r.record.id);
  };
  return place(a) < place(b);
}

}  // namespace hone::db
