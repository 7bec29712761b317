#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "base/credentials.h"
#include "measure/local_measurer.h"
#include "proto/farm_messages.h"
#include "worker/lease_desk.h"

namespace hone::worker {

struct WorkerOptions {
  std::string server;  ///< "coordinator:7421"
  bool plaintext = false;
  Credentials credentials;
  std::string name;  ///< what the certificate says, or in plaintext would say
  proto::Hello hello;
  DeskOptions desk;
  measure::LocalMeasurerOptions measurer;
  std::string lock_folder;  ///< of device locks
  std::string lock;         ///< of its device there (measure::HostDevice)
  /// Every result before it is first sent and every acknowledgement when it came, a line each:
  /// "result|ack TOKEN SESSION ATTEMPT DIGEST [VERDICT]"; empty: none. For tests and audits.
  std::string journal;
  /// After so long an end that was asked for is not put off any more: neither for what runs nor for
  /// results that honed does not acknowledge. Less than a service manager waits.
  int64_t drain_ms = 90'000;
  int64_t silent_ms = 30'000;  ///< a connection on which nothing comes for so long is given up
  uint64_t seed = 0;           ///< of the back-off
};

/// Dials in, measures under leases, reconnects for ever; until `ending` is set, then drains: it
/// finishes what runs, gives the rest back and returns. An error is one that no retry mends: it was
/// refused for its versions, its certificate or its name.
absl::Status RunWorker(WorkerOptions options, const MonotonicClock& clock,
                       const std::atomic<bool>& ending);

}  // namespace hone::worker
