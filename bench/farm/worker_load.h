#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "base/core/clock.h"
#include "base/core/hash128.h"
#include "base/credentials.h"
#include "bench/farm/latencies.h"
#include "proto/farm_messages.h"

namespace hone::bench {

/// Many workers in one process: each has a certificate, a TCP connection and a LeaseDesk (the logic
/// of hone-worker) of its own and speaks the real protocol; only building and running are replaced
/// by timers. Thread-safe.
class WorkerLoad {
 public:
  struct Options {
    std::string server;
    std::vector<Credentials> credentials;  ///< one a worker; its names are w0, w1, …
    std::string builder_version, target, device_class;
    int cores = 1;
    int ahead = 12;      ///< leases that a worker holds unfinished
    int64_t run_ns = 0;  ///< mean time of one run; a worker runs one at a time
    uint64_t seed = 0;
  };
  /// `clock` must outlive it.
  WorkerLoad(Options options, const MonotonicClock& clock);
  ~WorkerLoad();

  /// Dials in, spread over `ramp_ns`.
  void Start(int64_t ramp_ns);
  /// Every worker finishes what it runs, gives the rest back and waits for acknowledgements.
  void BeginDraining();
  /// Ends every stream and waits for their ends.
  void Stop();

  /// From the credit that allows it to the arrival of a grant; from writing a result to its
  /// acknowledgement.
  const Latencies& grants() const;
  const Latencies& commits() const;

  struct Counts {
    int64_t connected = 0;     ///< welcomed, and the stream lives
    int64_t working = 0;       ///< of them, got a grant or an acknowledgement on that stream
    int64_t acknowledged = 0;  ///< results accepted, all told
    int64_t refused = 0;       ///< results with another answer
    int64_t held = 0;          ///< leases, unfinished or unacknowledged
    int64_t streams = 0;       ///< begun, all told
  };
  Counts counts() const;

  struct Accepted {
    Hash128 token, session;
    int64_t attempt = 0;
    std::string digest;
  };
  /// Every acknowledgement that accepted a result, of all workers.
  std::vector<Accepted> Journal() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone::bench
