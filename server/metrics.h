#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "server/call_identity.h"
#include "server/certificate_ends.h"
#include "server/farm_loop.h"
#include "server/farm_view.h"
#include "server/process_usage.h"

namespace hone::server {

/// What honed knows of itself beside its farm.
struct ProcessFacts {
  std::string version, builder;
  int64_t now_ns = 0, started_ns = 0;  ///< on the monotonic clock
  double started_unix = 0;             ///< seconds since 1970
  ProcessUsage usage;
  CommitTimes commits;
  std::string trouble;     ///< why nothing can be written just now; empty: it can
  int64_t trouble_ns = 0;  ///< for how long
  int64_t log_bytes = 0, wal_bytes = 0;
  std::array<int64_t, kNumRefusals> refusals{};  ///< of callers, by Refusal
  int64_t streams = 0;                           ///< of workers, connected
  std::vector<CertificateEnd> certificates;
};

/// Everything countable in Prometheus' text format (version 0.0.4), named by its conventions.
/// Names, types and labels are documented in docs/reference/metrics.md. Counters begin at zero with
/// each start of honed.
std::string MetricsText(const ProcessFacts& facts, const FarmView& view);

}  // namespace hone::server
