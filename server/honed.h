#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "base/credentials.h"
#include "server/call_identity.h"
#include "server/farm.h"

namespace hone::server {

struct HonedOptions {
  std::string log_path;
  std::string listen;  ///< "0.0.0.0:7421"
  Transport transport = Transport::kMutualTls;
  Credentials credentials;  ///< of a server; unused in plaintext
  FarmPolicy policy;
  size_t unsent_bytes = size_t{4} << 20;  ///< for a worker that does not read; it is not heard then
  std::string builder_version;
  std::string versions;                   ///< JSON for the log's session rows
  std::string metrics_listen;             ///< "0.0.0.0:9464": /metrics and /healthz; empty: neither
  std::string page_listen;                ///< "127.0.0.1:7422", loopback alone; empty: no page
  std::map<std::string, int64_t> shares;  ///< of projects; the others have 1
  std::string ca_folder;  ///< whose issued.log goes into the audit; empty or absent: none
};

/// kInvalidArgument: what no start with these options would get past. It looks at nothing but the
/// options, and whether the log's folder is there.
absl::Status CheckOptions(const HonedOptions& options);

/// A running coordinator: the log's one writer, the loop, the sessions and the services.
class Honed {
 public:
  /// Takes up what the log holds, and listens. As CheckOptions; kUnavailable: the log or the
  /// address is taken.
  static absl::StatusOr<std::unique_ptr<Honed>> Start(const HonedOptions& options,
                                                      const MonotonicClock& clock,
                                                      const WallClock& wall_clock);
  virtual ~Honed() = default;

  virtual int port() const = 0;
  virtual int metrics_port() const = 0;  ///< 0: not listening
  virtual int page_port() const = 0;     ///< 0: not listening
  /// Ends calls and sessions (these go on with the next start) and everything that runs.
  virtual void Stop() = 0;
};

}  // namespace hone::server
