#include "db/recheck.h"

#include <limits>
#include <string>

#include "base/core/random_id.h"
#include "base/core/words.h"
#include "base/status.h"

namespace hone::db {

std::pair<Hash128, Hash128> RecheckIds(const Hash128& workload) {
  return {{workload.high, 0}, {workload.high, std::numeric_limits<uint64_t>::max()}};
}

Event EventOf(const Recheck& recheck) {
  std::string payload = recheck.workload.ToHex();
  char separator = ' ';
  for (const Hash128& id : recheck.replaced) {
    payload += separator + id.ToHex();
    separator = ',';
  }
  if (recheck.replaced.empty()) payload += " -";
  return {.id = {recheck.workload.high, RandomId().low},
          .session = recheck.session,
          .type = kRecheck,
          .payload = std::move(payload)};
}

std::optional<Recheck> RecheckOf(const Event& event, bool merged) {
  if (event.type != kRecheck) return std::nullopt;
  Words words(event.payload);
  Recheck recheck;
  recheck.workload = words.Hash();
  recheck.replaced = words.Hashes();
  recheck.session = event.session;
  recheck.merged = merged;
  const bool whole = !words.bad() && words.empty();
  return whole ? std::optional(std::move(recheck)) : std::nullopt;
}

void ReplacedRecords::Add(const Recheck& recheck) {
  (recheck.merged ? merged_ : all_).insert(recheck.replaced.begin(), recheck.replaced.end());
}

absl::StatusOr<ReplacedRecords> ReplacedOf(Database& database) {
  ReplacedRecords replaced;
  for (const bool merged : {true, false}) {
    HONE_RETURN_IF_ERROR(database.ScanEvents({.local_only = !merged}, [&](const Event& event) {
      if (const auto recheck = RecheckOf(event, merged)) replaced.Add(*recheck);
      return absl::OkStatus();
    }));
  }
  return replaced;
}

bool ReplacedRecords::Contains(const Hash128& record, bool merged) const {
  return all_.contains(record) || (merged && merged_.contains(record));
}

}  // namespace hone::db
