#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "db/database.h"
#include "db/farm_store.h"
#include "db/record.h"
#include "proto/farm_messages.h"
#include "server/metrics.h"

namespace hone::server::web {

struct SessionRow {
  db::FarmSession row;
  proto::SessionSpec spec;
};

/// Where the page's facts come from; called on the page's one thread. Nothing here waits for the
/// farm's loop.
class PageSource {
 public:
  virtual ~PageSource() = default;

  virtual ProcessFacts Facts() = 0;
  virtual FarmView View() = 0;
  /// As /healthz says it; empty: well.
  virtual std::string Trouble() = 0;
  virtual int64_t UnixMs() = 0;
  /// All that have not ended and the newest others, newest first, as they were at most two seconds
  /// ago; each row without its spec's bytes.
  virtual std::vector<std::shared_ptr<const SessionRow>> Sessions() = 0;

  /// Events of a session after a sequence number, in order, until `visit` returns false.
  virtual absl::Status ScanEvents(const Hash128& session, int64_t after,
                                  const std::function<bool(const db::Event&)>& visit) = 0;
  /// Attempts of a session that are not ok, oldest first, until `visit` returns false.
  virtual absl::Status ScanFailures(const Hash128& session,
                                    const std::function<bool(const db::Attempt&)>& visit) = 0;
  /// The best record of a key, as the builder in use ranks it; none is no error.
  virtual absl::StatusOr<std::optional<db::RankedRecord>> FindBest(const db::RecordKey& key) = 0;
};

}  // namespace hone::server::web
