#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "server/certificate_ends.h"
#include "server/metrics.h"
#include "server/worker_streams.h"

namespace hone::server {

/// What an operator sees of a honed: metrics and /healthz over HTTP, and the page. It never waits
/// for the loop, so that it answers while nothing can be written: it shows what the loop last told.
/// It reads the log through a reader of its own.
class HealthMonitor {
 public:
  struct Context {
    FarmLoop& loop;
    const WorkerStreams& workers;
    const CertificateEnds& certificates;
    const MonotonicClock& clock;
    const WallClock& wall_clock;
    std::string log_path;
    std::string builder_version;
    std::string metrics_listen;  ///< empty: no metrics
    std::string page_listen;     ///< empty: no page
  };
  /// kInvalidArgument, kUnavailable: it cannot listen there.
  static absl::StatusOr<std::unique_ptr<HealthMonitor>> Start(const Context& context);
  virtual ~HealthMonitor() = default;

  /// Asks the loop how the farm is; call it about once a second.
  virtual void Look() = 0;
  /// Empty: well; else what is wrong, as /healthz says it.
  virtual std::string Trouble() const = 0;
  /// 0: not listening.
  virtual int metrics_port() const = 0;
  virtual int page_port() const = 0;
  /// Ends the servers.
  virtual void Stop() = 0;
};

}  // namespace hone::server
