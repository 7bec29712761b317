#include "server/record_finder.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "db/workload_distance.h"
#include "proto/limits.h"

namespace hone::server {

absl::StatusOr<FoundRecords> AnswerFrom(db::Database& log, const proto::FindRecords& question) {
  FoundRecords found;
  const db::RecordQuery query{.key = question.key, .builder_version = question.builder_version};
  const auto limit = static_cast<size_t>(question.limit);
  if (question.model) {
    HONE_ASSIGN_OR_RETURN(found.verdicts, log.ModelVerdicts(*question.model));
    std::erase_if(found.verdicts, [&](const db::ModelVerdict& verdict) {
      return !db::SameButExtensions(verdict.target, question.key.target) ||
             verdict.device_class != question.key.device_class;
    });
    if (found.verdicts.size() > proto::kMaxFound) found.verdicts.resize(proto::kMaxFound);
  }
  switch (question.question) {
    case proto::RecordQuestion::kExact: {
      HONE_ASSIGN_OR_RETURN(found.records, log.TopRecords(query, question.limit));
      return found;
    }
    case proto::RecordQuestion::kSameIsa: {
      HONE_ASSIGN_OR_RETURN(found.records, log.SameIsaRecords(query));
      if (found.records.size() > limit) found.records.resize(limit);
      return found;
    }
    case proto::RecordQuestion::kNear: break;
  }
  HONE_ASSIGN_OR_RETURN(
      std::vector<db::WorkloadRow> rows,
      log.MeasuredWorkloads(db::IsaOfTarget(question.key.target), question.key.measurement_policy));
  const db::WorkloadForm wanted = db::FormOf(question.workload_text);
  std::vector<std::pair<double, size_t>> near;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].hash == question.key.workload) continue;
    const auto distance = db::WorkloadDistance(wanted, db::FormOf(rows[i].text));
    if (distance) near.emplace_back(*distance, i);
  }
  std::ranges::sort(near);
  for (size_t k = 0; k < std::min(near.size(), limit); ++k) {
    found.workloads.push_back(std::move(rows[near[k].second].text));
  }
  return found;
}

}  // namespace hone::server
