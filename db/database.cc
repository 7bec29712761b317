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

bool Overrules(const RankedRecord& word, Stands word_stands, const RankedRecord& other) {
  const RecordKey &a = word.record.key, &b = other.record.key;
  const bool one_origin =
      word.merged == other.merged && word.other_builder == other.other_builder &&
      (!word.other_builder || word.record.builder_version == other.record.builder_version);
  const bool newer = other.record.rigor == Rigor::kConfirmed ? word_stands == Stands::kLater
                                                             : other.merged || other.other_builder;
  return one_origin && newer && word.record.rigor == Rigor::kConfirmed &&
         a.workload == b.workload && a.target == b.target && a.device_class == b.device_class &&
         a.measurement_policy == b.measurement_policy && a.accuracy >= b.accuracy;
}

bool RanksBefore(const Contender& a, const Contender& b) {
  const auto place = [](const Contender& c) {
    return std::tuple(-static_cast<int>(c.ranked.rigor), c.overruled, c.ranked.record.low_ns,
                      c.ranked.record.id);
  };
  return place(a) < place(b);
}

}  // namespace hone::db
