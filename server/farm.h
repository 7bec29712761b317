#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "base/core/hash128.h"
#include "db/farm_store.h"
#include "proto/farm_messages.h"
#include "server/device_meter.h"
#include "server/farm_view.h"
#include "server/transitions.h"

// The farm's logic: sessions' attempts, leases, workers and devices, and who gets what next. Free
// of gRPC, threads, clocks and I/O; one event at a time. Docs: docs/formats/farm.md.
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
  int result_window = 64;                  ///< results that a worker may send unasked
};

using StreamId = int64_t;

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

/// What events led to since the last Take: first `unit` is committed, then the rest is acted on.
struct FarmStep {
  std::vector<db::FarmChange> changes;
  std::vector<Outgoing> messages;
  std::vector<Closing> closings;
  std::vector<Delivery> deliveries;
};

/// What a session may use and who pays.
struct SessionPlan {
  Hash128 id;
  std::string project;
  int priority = 0;
  std::string target, device_class;
};

/// Looks an ended lease up (db::FarmStore::FindLease).
class LeaseReader {
 public:
  virtual ~LeaseReader() = default;
  virtual std::optional<db::FarmLease> FindLease(const Hash128& token) = 0;
};

class Farm {
 public:
  struct Versions {
    int protocol = 0;
    std::string builder;
    int measurement_policy = 0;
  };

  /// `start`: random, stored by FarmStore::AddStart; the high half of every token from here on.
  Farm(FarmPolicy policy, Versions versions, uint64_t start, LeaseReader& ended);

  /// What an earlier start left: its open leases get their full duration again from `now_ns`.
  void Restore(const db::FarmState& state, int64_t now_ns);

  // ---- workers ----
  /// `worker`: the name in its certificate.
  void OnHello(StreamId stream, const std::string& worker, const proto::Hello& hello,
               int64_t now_ns);
  void OnMessage(StreamId stream, const proto::WorkerMessage& message, int64_t now_ns);
  void OnGone(StreamId stream, int64_t now_ns);
  /// Ends the streams of a revoked name and takes its leases back.
  void RevokeWorker(const std::string& worker, int64_t now_ns);
  /// kNotFound: no such device; kFailedPrecondition: not in that state.
  absl::Status SetDevice(const std::string& worker, const std::string& device, DeviceEvent event,
                         const std::string& reason, int64_t now_ns);

  // ---- sessions ----
  void BeginSession(const SessionPlan& plan);
  /// Takes its leases back and forgets it.
  void EndSession(const Hash128& session, const std::string& reason, int64_t now_ns);
  /// Asks for an attempt to be measured; its result is delivered once a start of honed.
  void Submit(const Hash128& session, int64_t attempt, proto::Job job, int64_t now_ns);
  /// What ends with the commit of these attempts' results.
  std::vector<db::FarmChange> EndsOf(const Hash128& session,
                                     const std::vector<int64_t>& attempts) const;
  /// That commit is durable: acknowledges.
  void OnCommitted(const Hash128& session, const std::vector<int64_t>& attempts, int64_t now_ns);

  /// Limits and lost workers; call it a few times a second.
  void Tick(int64_t now_ns);

  FarmStep Take();

  // ---- what can be seen ----
  /// A device that can run the target, of that class if it is not empty.
  std::optional<proto::DeviceFacts> FindDevice(const std::string& target,
                                               const std::string& device_class) const;
  /// Candidates that keep the session's devices busy.
  int CapacityFor(const Hash128& session) const;
  std::vector<proto::DeviceInfo> Devices() const;
  const FarmCounters& counters() const { return counters_; }
  int64_t open_leases() const { return static_cast<int64_t>(leases_.size()); }
  int64_t waiting() const;
  /// Device time charged to a project so far, and what is under way for it.
  int64_t charged_ns(const std::string& project) const;
  /// Everything that operators see, at this moment.
  FarmView View(int64_t now_ns) const;

 private:
  struct Attempt {
    AttemptState state = AttemptState::kWaiting;
    std::optional<proto::Job> job;  ///< none until the session's driver asked for it
    int losses = 0, faults = 0;
    bool condemned = false;
    std::string condemned_why;
    int64_t not_before_ns = 0;
    Hash128 token;  ///< kLeased, kAnswered by a worker
    std::optional<proto::WorkResult> result;
    bool delivered = false;
  };
  struct Lease {
    int64_t waiting_since_ns = 0;
    Hash128 session;
    int64_t attempt = 0;
    std::string worker;  ///< key of workers_
    Hash128 instance;
    LeaseState state = LeaseState::kGranted;
    int64_t since_ns = 0;  ///< of the state
    std::string content;
    int64_t charge_ns = 0;
    bool alone = false;
  };
  struct Session {
    SessionPlan plan;
    bool begun = false;
    std::map<int64_t, Attempt> attempts;
    std::set<int64_t> waiting;
    int64_t leased = 0;
  };
  struct Worker {
    std::string name;
    proto::Hello hello;
    WorkerState state = WorkerState::kGone;
    std::optional<StreamId> stream;
    int64_t heard_ns = 0;  ///< or, when gone, since when
    int64_t leases_allowed = 0, leases_sent = 0;
    int64_t results_allowed = 0, results_received = 0;
    std::set<Hash128> leases;
    DeviceState device = DeviceState::kActive;
    std::string reason;
    int64_t busy_ns = 0, results = 0;
  };
  struct Project {
    int64_t share = 1;
    int64_t charged_ns = 0;
    int64_t leased = 0;
  };
    DeviceMeter meter;

  bool RefuseHello(StreamId stream, const std::string& worker, const proto::Hello& hello,
                   int64_t now_ns);
  void Reconcile(const std::string& key, const proto::Hello& hello, proto::Welcome& welcome,
                 int64_t now_ns);
  void OnResult(Worker& worker, const proto::WorkResult& result, int64_t now_ns);
  void OnOldResult(StreamId stream, const proto::WorkResult& result);
  std::string WhyInvalid(const Attempt& attempt, const proto::WorkResult& result) const;
  void Hear(Worker& worker, const std::vector<proto::HeldLease>& held, int64_t now_ns);
  void MarkStarted(const Hash128& token, const std::string& key, int64_t now_ns);
  /// Ends a lease without a result; its attempt waits again, or is condemned when blamed too often.
  enum class Blame : uint8_t { kNobody, kCandidate };
  void EndLease(const Hash128& token, LeaseEvent event, Blame blame, const std::string& why,
                int64_t now_ns);
  void Condemn(const Hash128& session, int64_t attempt, Attempt& a);
  void Deliver(const Hash128& session, int64_t attempt, Attempt& a);
  void LoseWorker(const std::string& key, const std::string& why, int64_t now_ns);
  void CloseStream(Worker& worker, absl::Status status);
  void SettleDevice(Worker& worker);
  void GrantAll(int64_t now_ns);
  bool GrantOne(const std::string& key, Worker& worker, int64_t now_ns);
  bool MayRun(const Worker& worker, const Session& session) const;
  Session* PickSession(const Worker& worker, int64_t now_ns, int64_t* attempt);
  void Send(const Worker& worker, proto::ServerMessage message);
  void SendCredit(Worker& worker);
  Worker* WorkerOf(StreamId stream);

  const FarmPolicy policy_;
  const Versions versions_;
  const uint64_t start_;
  LeaseReader& ended_;
  uint64_t tokens_ = 0;
  std::map<Hash128, Session> sessions_;
  std::map<Hash128, Lease> leases_;
  std::map<std::string, Worker> workers_;  ///< by "name/device"
  std::map<StreamId, std::string> streams_;
  std::map<std::string, Project> projects_;
  std::map<std::string, db::FarmDevice> known_devices_;  ///< not active, from the store
  FarmStep step_;
  FarmCounters counters_;
};

}  // namespace hone::server
