#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "base/core/hash128.h"
#include "db/farm_store.h"
#include "proto/farm_messages.h"
#include "proto/limits.h"

// What goes into a Farm and comes out of it, as plain values.
namespace hone::server {

/// Durations, all on honed's monotonic clock.
struct FarmPolicy {
  int64_t start_by_ns = 120'000'000'000;
  int64_t run_by_ns = 60'000'000'000;
  /// A worker is told durations shorter by this, so that it gives up before honed takes back.
  int64_t grace_ns = 5'000'000'000;
  int64_t heartbeat_ns = 1'000'000'000;
  int64_t lost_after_ns = 20'000'000'000;  ///< without a stream or a word
  int max_losses = 2;                      ///< of one attempt, then it is condemned
  int max_faults = 6;                      ///< of infrastructure, then the session learns of it
  int64_t first_pause_ns = 200'000'000;    ///< after such a fault; doubles
  int max_device_faults = 2;  ///< candidates good elsewhere that a device fails on: quarantine
  /// The same of those that it is lost with, in a row: a worker that is killed or cut off now and
  /// then answers well in between.
  int max_lost_in_row = 3;
  double most_drift = 0.03;  ///< of a sentinel off its class's median; beyond: its own class
  double fast_margin = 1.3;  ///< a result so much under what is possible is measured again
  /// A time that is too good waits so long for another device; then it counts, marked as noisy.
  int64_t doubt_ns = 600'000'000'000;
  double unlike_ratio = 1.3;  ///< two measurements of one candidate that differ more disagree
  int result_window = 64;     ///< results that a worker may send unasked
  int64_t artifact_cache_bytes = proto::kArtifactCacheBytes;
  int64_t unused_bytes = proto::kMaxUnusedBytes;     ///< of unfinished builds, all workers together
  int64_t unused_of_any = proto::kMaxArtifactBytes;  ///< of these, a name's while they last
  size_t max_devices = proto::kMaxDevices;           ///< of one worker's name
  size_t chunk_bytes = proto::kArtifactChunkBytes;   ///< of an artifact, in one message
};

using StreamId = int64_t;

/// What a worker must have as honed has it.
struct FarmVersions {
  int protocol = 0;
  std::string builder;
};

/// A token says what kind of lease it is of: the two highest bits of its counter.
Hash128 MakeToken(uint64_t start, uint64_t count, proto::LeaseKind kind);
proto::LeaseKind KindOf(const Hash128& token);

/// A message to a worker, to be sent once the step's unit is durable.
struct Outgoing {
  StreamId stream = 0;
  proto::ServerMessage message;
};

/// A stream to end, with what the worker is told.
struct Closing {
  StreamId stream = 0;
  absl::Status status;
};

/// A result for the driver of a session.
struct Delivery {
  Hash128 session;
  int64_t attempt = 0;
  proto::WorkResult result;
};

/// What events led to since the last Take: first `changes` are committed, then the rest is acted
/// on; deliveries, which nobody outside sees, at once.
struct FarmStep {
  std::vector<db::FarmChange> changes;
  std::vector<Outgoing> messages;
  std::vector<Closing> closings;
  std::vector<Delivery> deliveries;
};

/// What a session may use and who pays.
struct SessionTerms {
  Hash128 id;
  std::string project;
  int priority = 0;
  std::string target, device_class;
};

/// What a session's driver says of a job beside the job itself.
struct JobHints {
  double fastest_ns = 0;  ///< by nominal peaks, where no device is probed; 0: unknown
  double flop = 0;        ///< f32 multiply-adds (two each) that no schedule avoids; 0: unknown
  int threads = 1;        ///< that share them

  bool operator==(const JobHints&) const = default;
};

/// Looks an ended lease up (db::FarmStore::FindLease).
class LeaseReader {
 public:
  virtual ~LeaseReader() = default;
  virtual std::optional<db::FarmLease> FindLease(const Hash128& token) = 0;
};

}  // namespace hone::server
