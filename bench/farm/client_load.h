#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"

#include "base/core/clock.h"
#include "base/core/hash128.h"
#include "base/credentials.h"
#include "bench/farm/latencies.h"
#include "proto/farm_messages.h"

namespace grpc {
class ClientContext;
}  // namespace grpc

namespace hone::bench {

/// Clients of a farm: they begin sessions and watch them as `hone tune --server` does, each over a
/// connection of its own, and dial again when honed was killed. Thread-safe.
class SessionLoad {
 public:
  SessionLoad(std::string server, Credentials credentials, const MonotonicClock& clock);
  ~SessionLoad();

  absl::StatusOr<Hash128> Begin(const proto::SessionSpec& spec);
  /// From now on a thread watches it.
  void Watch(const Hash128& session);
  void Stop();

  /// Events seen, and of them those that came twice or out of order.
  int64_t events() const { return events_; }
  int64_t disordered() const { return disordered_; }
  /// Sessions whose watch said that they have ended.
  int64_t ended() const { return ended_; }

 private:
  void WatchLoop(const Hash128& session);

  const std::string server_;
  const Credentials credentials_;
  const MonotonicClock& clock_;
  std::atomic<bool> stopping_{false};
  std::atomic<int64_t> events_{0}, disordered_{0}, ended_{0};
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::vector<grpc::ClientContext*> calls_;  ///< under way; guarded by mutex_
};

/// Clients that look keys up: `clients` threads with a connection each, together `rate` a second
/// (0: as fast as they can), each question drawn from `keys` in turn, for `seconds`.
struct LookupLoad {
  std::string server;
  Credentials credentials;
  std::string builder_version;
  const std::vector<db::RecordKey>* keys = nullptr;
  int clients = 32;
  double rate = 2000, seconds = 10;
};
struct LookupFigures {
  Latencies::Summary latency;  ///< of a call, each client's first one left out
  int64_t found = 0, failed = 0;
  double rate = 0;  ///< reached
};
LookupFigures RunLookups(const LookupLoad& load, const MonotonicClock& clock);

}  // namespace hone::bench
