#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "db/database.h"

namespace hone::db {

struct MergeReport {
  int64_t added = 0;
  int64_t known = 0;                ///< in `into` already
  std::vector<Conflict> conflicts;  ///< refused: their ids stand for other content in `into`
  int64_t dropped = 0;              ///< refused: what they name was damaged or missing in `from`

  bool operator==(const MergeReport&) const = default;
};

/// Adds everything of `from` to `into`, where its records count as screened. Merging twice changes
/// nothing, and an interrupted merge is finished by merging again. `from` is read in one state.
absl::StatusOr<MergeReport> MergeLog(Database& into, Database& from);

}  // namespace hone::db
