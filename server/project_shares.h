#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "db/farm_store.h"

// Shares of projects, as honed's configuration says them.
namespace hone::server {

/// Reads `NAME=SHARE` each, with a share from 1 to 1,000,000.
absl::StatusOr<std::map<std::string, int64_t>> ParseShares(const std::vector<std::string>& pairs);

/// Makes these the shares of all projects, 1 where there is none: what changes stands in the log
/// and its audit. `projects` are the store's and follow it.
absl::Status SetShares(db::FarmStore& store, const std::map<std::string, int64_t>& shares,
                       int64_t now_ms, std::vector<db::FarmProject>& projects);

}  // namespace hone::server
