#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "db/database.h"
#include "proto/farm_messages.h"

namespace hone::server {

struct FoundRecords {
  std::vector<db::RankedRecord> records;
  std::vector<std::string> workloads;      ///< kNear: texts, nearest first
  std::vector<db::ModelVerdict> verdicts;  ///< of the model that asks, newest first
};

/// Answers one question of the look-up ladder, which the client climbs (db::Lookup over these).
absl::StatusOr<FoundRecords> AnswerFrom(db::Database& log, const proto::FindRecords& question);

}  // namespace hone::server
