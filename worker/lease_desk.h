#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

#include "base/core/random.h"
#include "proto/farm_messages.h"
#include "proto/limits.h"
#include "worker/artifact_shelf.h"

namespace hone::worker {

struct DeskOptions {
  int ahead = 12;                 ///< leases held unfinished: what keeps builders and device busy
  int most_unacknowledged = 512;  ///< results kept; beyond, no new lease is asked for
  int64_t shelf_bytes = proto::kShelfBytes;  ///< artifacts of others kept
  size_t chunk_bytes = proto::kArtifactChunkBytes;
};

/// A job that the desk hands out to be built or measured; `number` is the desk's.
struct DeskJob {
  int64_t number = 0;
  Hash128 token;
  proto::Job job;
  proto::LeaseKind kind = proto::LeaseKind::kBoth;
  std::vector<int> wanted;              ///< kBuild: Grant.wanted
  std::vector<HeldArtifact> artifacts;  ///< kRun: of Grant.artifacts, all here
};

/// What a worker holds, and what it says next: pure logic, one event at a time. Everything survives
/// a lost stream; a result is kept until it is acknowledged.
class LeaseDesk {
 public:
  LeaseDesk(DeskOptions options, proto::Hello hello);

  /// A new stream: the first message is Hello with what is held.
  void OnConnected();
  void OnDisconnected();
  void OnServer(const proto::ServerMessage& message, int64_t now_ns);

  /// The job runs from now on.
  void Start(int64_t number, int64_t now_ns);
  /// The answer to a job; the token is filled in. Dropped when the lease was given up meanwhile, or
  /// answered as Tick does.
  void Finish(int64_t number, proto::WorkResult result);
  /// The answer to a job to build: one artifact for each that was wanted.
  void FinishBuild(int64_t number, std::vector<HeldArtifact> artifacts, int64_t build_ns);
  /// Gives leases up whose time is over: what has not begun goes back, what runs is killed and
  /// answered as a candidate that takes too long. Call it about as often as heartbeats.
  void Tick(int64_t now_ns);
  /// Nothing new: what runs is finished, everything else goes back.
  void BeginDraining();
  /// A child cannot be killed. For the life of this process nothing more is asked for, what has not
  /// started goes back, and each stream is told, after the answers that there are.
  void SetDeviceLost(std::string reason);
  void AddBusy(int64_t ns) { busy_ns_ += ns; }
  /// What the device was probed at: told now, and with every Hello.
  void SetProbes(const proto::Probes& probes);
  /// Whether honed has asked for a new probe since the last call.
  bool TakeProbeAsked() { return std::exchange(probe_asked_, false); }
  /// For heartbeats.
  void SetSentinel(int64_t ns) { sentinel_ns_ = ns; }

  /// The next job to measure.
  std::optional<DeskJob> TakeJob();
  /// The next message to send on the stream; nothing when disconnected or out of credit.
  std::optional<proto::WorkerMessage> TakeMessage();
  proto::Heartbeat MakeHeartbeat() const;

  int heartbeat_ms() const { return heartbeat_ms_; }
  bool draining() const { return draining_; }
  /// Nothing is held and no result waits.
  bool empty() const { return leases_.empty(); }
  int64_t unfinished() const;
  /// Started messages that have not been taken yet.
  bool started_unsent() const;

  /// Jobs handed out whose lease ended otherwise: whatever runs for them is to be killed.
  std::vector<int64_t> TakeCancelled() { return std::exchange(cancelled_, {}); }

  struct Acknowledged {
    Hash128 token, session;
    int64_t attempt = 0;
    proto::Verdict verdict = proto::Verdict::kAccepted;
    std::string digest;
  };
  /// Acknowledgements that came since the last call.
  std::vector<Acknowledged> TakeAcknowledged() { return std::exchange(acknowledged_, {}); }

 private:
  enum class Phase : uint8_t { kFetching, kQueued, kTaken, kStarted, kFinished };
  struct Lease {
    Hash128 token, session;
    int64_t attempt = 0;
    proto::Job job;
    Phase phase = Phase::kQueued;
    int64_t start_by_ns = 0, run_by_ns = 0;  ///< the second is a duration until it starts
    int64_t started_ns = 0;
    std::optional<proto::WorkResult> result;
    bool sent = false;  ///< on this stream
    proto::LeaseKind kind = proto::LeaseKind::kBoth;
    std::vector<int> wanted;
    std::vector<HeldArtifact> artifacts;  ///< fetched, or built
    std::optional<proto::Built> built;    ///< kBuild: beside a result
    size_t uploaded = 0;                  ///< artifacts sent on this stream
    int64_t uploaded_bytes = 0;           ///< of the next one
  };
  /// An artifact that is being fetched: one at a time.
  struct Incoming {
    int64_t number = 0;
    proto::Artifact artifact;
    std::string data;
  };

  void OnWelcome(const proto::Welcome& welcome);
  void OnGrant(const proto::Grant& grant, int64_t now_ns);
  void Forget(const Hash128& token);
  void Return(int64_t number, const std::string& reason);
  void TimeOut(int64_t number, int64_t now_ns);
  void OfferCredit();
  void OnChunk(const proto::ArtifactChunk& chunk);
  /// Goes on with the lease that fetches: what is missing is asked for, a lease that has all waits
  /// for its run.
  void FetchNext();
  void AskForPart();
  std::optional<proto::WorkerMessage> TakeAnswer(int64_t number, Lease& lease);

  const DeskOptions options_;
  proto::Hello hello_;
  int heartbeat_ms_ = 1000;
  bool connected_ = false, welcomed_ = false, draining_ = false;
  int64_t next_number_ = 1;
  std::map<int64_t, Lease> leases_;
  std::map<Hash128, int64_t> by_token_;
  std::deque<int64_t> queue_;     ///< jobs not taken
  std::deque<int64_t> fetching_;  ///< leases whose artifacts are not all here
  std::optional<Incoming> incoming_;
  ArtifactShelf shelf_;
  int64_t uploading_ = 0;  ///< the lease whose artifacts are being sent; 0: none
  std::deque<proto::WorkerMessage> out_;
  int64_t grants_on_stream_ = 0, credit_offered_ = 0;
  int64_t results_on_stream_ = 0, results_allowed_ = 0;
  int64_t busy_ns_ = 0, sentinel_ns_ = 0;
  bool probe_asked_ = false;
  std::optional<std::string> lost_;  ///< the device, and why
  bool lost_unsent_ = false;         ///< on this stream
  std::vector<Acknowledged> acknowledged_;
  std::vector<int64_t> cancelled_;
};

/// Pauses between attempts to connect: doubling, jittered, bounded.
class BackOff {
 public:
  explicit BackOff(uint64_t seed) : random_(seed) {}
  int64_t NextNs();
  void Reset() { tries_ = 0; }

 private:
  Random random_;
  int tries_ = 0;
};

}  // namespace hone::worker
