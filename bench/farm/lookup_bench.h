#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "bench/farm/latencies.h"
#include "db/record.h"

namespace hone::bench {

struct LookupLog {
  int64_t records = 1'000'000;
  int64_t keys = 200'000;
};

/// Makes a log with so many records, all keys alike. Minutes.
absl::Status MakeLookupLog(const LookupLog& log, const std::string& path);

/// So many questions in a random order, every second one for a key that the log does not have: an
/// unknown Workload, or a known one on another device class.
std::vector<db::RecordKey> LookupQuestions(const LookupLog& log, int64_t count, uint64_t seed);

/// What a build does: a snapshot is opened and asked for the best records of each key, one after
/// the other, once to warm it and once measured. kInternal: other answers than there must be.
absl::StatusOr<Latencies::Summary> TimeSnapshotLookups(const std::string& snapshot,
                                                       const std::vector<db::RecordKey>& questions,
                                                       const MonotonicClock& clock);

}  // namespace hone::bench
