#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"

#include "base/core/clock.h"
#include "base/core/hash128.h"
#include "db/farm_store.h"
#include "proto/farm_messages.h"
#include "server/artifact_cache.h"
#include "server/farm_rows.h"
#include "server/farm_types.h"
#include "server/farm_view.h"
#include "server/known_good.h"
#include "server/transitions.h"

// The farm's logic: sessions' attempts, leases, workers and devices, and who gets what next. Free
// of gRPC, threads, clocks and I/O; one event at a time. Docs: docs/formats/farm.md.
namespace hone::server {

class Farm {
 public:
  using Hints = JobHints;
  using Versions = FarmVersions;

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
  /// The same for one stream, whose certificate alone is over.
  void EndStream(StreamId stream, const absl::Status& why, int64_t now_ns);
  /// kNotFound: no such device; kFailedPrecondition: not in that state.
  absl::Status SetDevice(const std::string& worker, const std::string& device, DeviceTrigger event,
                         const std::string& reason, int64_t now_ns);
  /// Has its worker probe it anew; a quarantined or lost one whose answer agrees with its class
  /// then gets work again. kNotFound: no such device; kFailedPrecondition: not connected.
  absl::Status AskProbe(const std::string& worker, const std::string& device,
                        const std::string& reason);

  /// Gives a device back what SetDevice and AskProbe change of it, as it is now: for one of them
  /// that could not be made durable. Nothing else may come between.
  std::function<void(Farm&)> Remember(const std::string& worker, const std::string& device) const;

  // ---- sessions ----
  void BeginSession(const SessionTerms& terms);
  /// From then on it gets nothing, its running leases are revoked, and what it waits for is
  /// answered as lost (kWorkerLost), free of charge.
  void SetDeadline(const Hash128& session, int64_t deadline_ns);
  /// What a worker is told: what has started and runs longer, it kills.
  int64_t run_limit_ns() const { return policy_.run_by_ns - policy_.grace_ns; }
  /// Forgets its attempts numbered below `below` that no worker has begun; how many these were.
  int64_t DropWaiting(const Hash128& session, int64_t below, int64_t now_ns);
  /// Takes its leases back and forgets it.
  void EndSession(const Hash128& session, const std::string& reason, int64_t now_ns);
  /// Asks for an attempt to be measured; its result is delivered once a start of honed.
  void Submit(const Hash128& session, int64_t attempt, proto::Job job, int64_t now_ns) {
    Submit(session, attempt, std::move(job), Hints{}, now_ns);
  }
  void Submit(const Hash128& session, int64_t attempt, proto::Job job, const Hints& hints,
              int64_t now_ns);
  /// Keeps packages, by their SHA-256, for a job of kind kModel that is submitted next.
  using Packages = std::map<std::string, std::shared_ptr<const std::string>>;
  void KeepPackages(const proto::Job& job, const Packages& packages);
  /// What ends with the commit of these attempts' results.
  std::vector<db::FarmChange> EndsOf(const Hash128& session,
                                     const std::vector<int64_t>& attempts) const;
  /// That commit is durable: acknowledges.
  void OnCommitted(const Hash128& session, const std::vector<int64_t>& attempts, int64_t now_ns);

  /// Limits and lost workers; call it a few times a second.
  void Tick(int64_t now_ns);
  /// For `ns` until now nothing could be written, so nothing was heard or answered: what runs
  /// against limits gets that time again.
  void Excuse(int64_t ns, int64_t now_ns);
  /// Before the events of a turn, many of which a second are usual. Where the last one is several
  /// heartbeats back, honed itself stood still (its process stopped, its machine paused): excused.
  void OnTurn(int64_t now_ns);

  /// With the grants that the events since the last one allow.
  FarmStep Take();
  /// Without: of a thousand events at once only the last asks for them, by Take.
  FarmStep TakePart();
  /// Messages that wait for no commit: none while there is a change.
  std::vector<Outgoing> TakeAnswers();

  /// For rows that people read; without one they say 1970. Must outlive the Farm.
  void SetWallClock(const WallClock* clock) { wall_clock_ = clock; }

  // ---- what can be seen ----
  /// A device that can run the target, of that class if it is not empty.
  std::optional<proto::DeviceFacts> FindDevice(const std::string& target,
                                               const std::string& device_class) const;
  /// Candidates that keep the session's devices busy.
  int CapacityFor(const Hash128& session) const;
  std::vector<proto::DeviceInfo> Devices(int64_t now_ns = 0) const;  ///< 0: without ages
  /// Everything that operators see, at this moment.
  FarmView View(int64_t now_ns) const;
  const FarmCounters& counters() const { return counters_; }
  int64_t open_leases() const { return static_cast<int64_t>(leases_.size()); }
  int64_t waiting() const;
  /// Device time charged to a project so far, and what is under way for it.
  int64_t charged_ns(const std::string& project) const;

 private:
  using Attempt = FarmAttempt;
  using Lease = OpenLease;
  using Session = FarmMember;
  using Worker = FarmWorker;
  using Project = FarmProjectUse;
  using ClassUse = FarmClassUse;

  /// SetDevice of one whose worker has not dialled in since honed was started.
  absl::Status SetUnseen(const std::string& worker, const std::string& device, DeviceTrigger event,
                         const std::string& reason);
  bool RefuseHello(StreamId stream, const std::string& worker, const proto::Hello& hello,
                   int64_t now_ns);
  void Reconcile(const std::string& key, const proto::Hello& hello, proto::Welcome& welcome,
                 int64_t now_ns);
  void OnResult(Worker& worker, const proto::WorkResult& result, int64_t now_ns);
  /// What becomes of an open lease's result; its session has asked for the attempt.
  void Judge(Lease& lease, const proto::WorkResult& result, int64_t now_ns);
  void JudgeParked(const Hash128& token, int64_t now_ns);
  void OnOldResult(StreamId stream, const proto::WorkResult& result);
  /// False: it sent more than it may, and its stream ends.
  bool CountResult(Worker& worker);
  void RenewCredit(Worker& worker);
  void OnReturned(const std::string& key, const proto::Returned& returned, int64_t now_ns);
  /// A fault of infrastructure: later, elsewhere. False: it had too many.
  bool PauseAfterFault(Attempt& attempt, const std::string& key, int64_t now_ns);
  std::string WhyInvalid(const Lease& lease, const Attempt& attempt,
                         const proto::WorkResult& result, int64_t now_ns) const;
  void Hear(Worker& worker, const std::vector<proto::HeldLease>& held, int64_t now_ns);
  void MarkStarted(const Hash128& token, const std::string& key, int64_t now_ns);
  /// Ends a lease without a result; its attempt waits again, or is condemned when blamed too often.
  enum class Blame : uint8_t { kNobody, kCandidate };
  /// A worker has this lease no longer; nullptr where that worker is not known any more. For
  /// whoever takes a lease out of leases_.
  Worker* ForgetLease(const std::string& key, const Hash128& token);
  void EndLease(const Hash128& token, LeaseTrigger event, Blame blame, const std::string& why,
                int64_t now_ns);
  void Condemn(const Hash128& session, int64_t attempt, Attempt& a);
  /// An answer from no lease to an attempt that waits.
  void AnswerFor(const Hash128& session, int64_t attempt, Attempt& a, proto::WorkResult result);
  void TakeBack(Worker& worker, const absl::Status& why, int64_t now_ns);
  /// A lease's end by honed's will; its worker is told.
  void Revoke(const Hash128& token, const std::string& why, int64_t now_ns);
  void StopAtDeadline(const Hash128& id, Session& session, int64_t now_ns);
  void Deliver(const Hash128& session, int64_t attempt, Attempt& a);
  // farm_build.cc: workers that build for others, and those that run what others built.
  /// One that is up, has this role and, where a session is given, may run it.
  bool AnyWorker(proto::WorkerRole role, const Session* session) const;
  /// Why nothing of a session that has begun can be measured just now; empty: it can.
  std::string WhyWaits(const Session& session) const;
  /// Why a worker that does half of the work gets none; empty: the other half is there.
  std::string MissingPartner(const Worker& worker) const;
  /// Its run workers want more than is built and being built.
  bool MayBuildFor(const Session& session) const;
  /// May have work of the session; and this attempt of it, which waits.
  bool MayServe(const std::string& key, const Worker& worker, const Session& session) const;
  bool MayHave(const std::string& key, const Worker& worker, const Session& session,
               int64_t number) const;
  /// The same, however much the worker holds.
  bool MayTake(const std::string& key, const Worker& worker, const Session& session,
               int64_t number) const;
  bool OthersCanBuild(const std::string& key, const Attempt& attempt) const;
  void Wait(Session& session, int64_t number, Attempt& attempt, int64_t now_ns);
  void Unwait(Session& session, int64_t number);
  /// Positions of its artifacts (Grant.wanted) that are not there.
  std::vector<int> Lacking(Attempt& attempt);
  /// What a lease of the worker's kind has beside the job; false: there is none, look again.
  bool Equip(Session& session, int64_t number, const Worker& worker, proto::Grant* grant);
  void RefuseLease(const Worker& worker, const Hash128& token, const std::string& why);
  void OnChunk(Worker& worker, const proto::ArtifactChunk& chunk, int64_t now_ns);
  void OnBuilt(Worker& worker, const proto::Built& built, int64_t now_ns);
  void OnOldBuilt(const Worker& worker, const Hash128& token);
  void OnFetch(Worker& worker, const proto::Fetch& fetch, int64_t now_ns);
  void TakeArtifacts(const proto::Built& built, const Lease& lease);
  /// Whether a name's uploads may have so many bytes more.
  bool HasRoom(const std::string& name, int64_t bytes) const;
  /// Ends a build lease for which there is no room just now: nobody's fault, later.
  void NoRoom(const Hash128& token, int64_t now_ns);
  /// Ends a build lease for what its worker did wrong: as a fault of infrastructure.
  void BuildFault(const Hash128& token, const std::string& why, int64_t now_ns);
  /// Answers a lease in its worker's stead: lost, at nobody's cost.
  void GiveUp(const Hash128& token, const std::string& why, int64_t now_ns);
  void PauseBuild(Attempt& attempt, int64_t now_ns);
  void PauseAfterLostBuild(Attempt& attempt, const std::string& key, int64_t now_ns);
  // farm_suspects.cc: who runs next alone.
  bool MayRunAlone(const std::string& key, const Worker& worker, const Session& session,
                   int64_t number, int64_t now_ns) const;
  /// Each suspect that waits has a worker that gets nothing else until it is empty.
  void ReserveForSuspects(int64_t now_ns);
  Session* ReservedFor(const std::string& key, Worker& worker, int64_t now_ns, int64_t* number);
  void Unreserve(const std::string& key, Worker& worker);
  /// What a suspect's good answer says of the worker that was lost with it.
  void JudgeLoss(const std::string& key, const Attempt& attempt, int64_t now_ns);
  // farm_doubt.cc: which answers and devices are believed.
  static Hash128 CandidateOf(const proto::Job& job, size_t trace);
  /// kElsewhere: it is kept back, and measured on another device; kUnconfirmed: there is none.
  enum class Belief : uint8_t { kCounts, kElsewhere, kUnconfirmed };
  Belief Believe(const std::string& key, const Lease& lease, const proto::WorkResult& result,
                 int64_t now_ns);
  std::string WhyTooFast(const std::string& key, const Attempt& attempt,
                         const proto::WorkResult& result) const;
  std::string WhyAtFault(const std::string& key, const Attempt& attempt,
                         const proto::WorkResult& result, int64_t now_ns);
  /// Not of a time that is too good, the device that it came from or that was lost with it.
  static bool MayConfirm(const std::string& key, const Attempt& attempt);
  /// Answers that nobody has confirmed for long count.
  void SettleDoubts(int64_t now_ns);
  /// What an answer says of the devices it and earlier ones came from.
  void JudgeDevices(const std::string& key, Attempt& attempt, const proto::WorkResult& result,
                    int64_t now_ns);
  void CountFault(const std::string& key, const Hash128& candidate, const std::string& why,
                  int64_t now_ns);
  /// It gets no work until a person lets it back; what it has answered counts.
  void Quarantine(Worker& worker, std::string cause, int64_t now_ns);
  /// Another device that is up and may run it, beside those of `but`.
  bool OthersCanRun(const std::string& key, const Session& session,
                    const std::set<std::string>& but) const;
  void CompareSentinels();
  void OnDeviceLost(Worker& worker, const proto::DeviceLost& lost, int64_t now_ns);
  /// It gets no work from now on, durably; in the audit as `action`.
  void TakeOut(Worker& worker, DeviceTrigger event, std::string action, std::string reason);
  /// Whether a person may let it back.
  absl::Status MayComeBack(const Worker& worker) const;
  // farm_probes.cc: what devices can do at most.
  void OnProbes(Worker& worker, const proto::Probes& probes);
  /// Finds the best believable probe of a class and who is far off the others.
  void CompareProbes(const std::string& device_class);
  /// Below this no result of the device is believed alone, before the margin; 0: unknown.
  double FastestNs(const std::string& key, const Hints& hints) const;
  void AddAudit(std::string action, std::string subject, std::string detail);
  ClassUse& UseOf(const Session& session);
  /// The session has so many leases more, or less.
  void CountLeases(Session& session, int64_t more);
  void Charge(const Session& session, int64_t ns, bool counts);
  void Wake(const Session& session);
  std::string ClassOf(const std::string& key, const Worker& worker) const;

  void LoseWorker(const std::string& key, const std::string& why, int64_t now_ns);
  void CloseStream(Worker& worker, absl::Status status);
  void SettleDevice(Worker& worker);
  /// With the next Take.
  void GrantAll(int64_t now_ns) { grants_due_ns_ = now_ns; }
  void MakeGrants(int64_t now_ns);
  /// Connected, active, with credit and room, and neither holds nor awaits a suspect.
  bool MayGet(const Worker& worker) const;
  /// Whether all that it holds is answered: nothing of it runs.
  bool IsIdle(const Worker& worker) const;
  bool GrantOne(const std::string& key, Worker& worker, int64_t now_ns);
  bool MayRun(const std::string& key, const Worker& worker, const Session& session) const;
  Session* PickSession(const std::string& key, const Worker& worker, int64_t now_ns,
                       int64_t* attempt);
  void Send(const Worker& worker, proto::ServerMessage message);
  void SendCredit(Worker& worker);
  Worker* WorkerOf(StreamId stream);

  const FarmPolicy policy_;
  const Versions versions_;
  const uint64_t start_;
  LeaseReader& ended_;
  ArtifactCache artifacts_;
  int64_t unused_bytes_ = 0;                       ///< uploads of build leases that have not ended
  std::map<std::string, int64_t> unused_of_name_;  ///< the same by a worker's name; none is erased
  bool divided_ = false;  ///< there was a worker that only builds, or only runs
  uint64_t tokens_ = 0;
  std::map<Hash128, Session> sessions_;
  std::map<Hash128, Lease> leases_;
  std::map<std::string, Worker> workers_;  ///< by "name/device"
  /// Keys of workers that may have become able to take more; of a thousand most are full. Tick
  /// finds who was missed.
  std::set<std::string> hungry_;
  std::map<Suspect, std::string> reserved_;  ///< waiting suspects, and the workers kept for them
  std::map<StreamId, std::string> streams_;
  std::map<std::string, Project> projects_;
  std::map<std::string, db::FarmDevice> known_devices_;  ///< not active, from the store
  std::map<std::string, double> peaks_;                  ///< FLOP/s of a core, by device class
  KnownGood good_;
  std::deque<FarmDoubt> doubts_;  ///< oldest first; some are settled
  /// By class: FarmClassUse::virtual_ns of the project that was last served there.
  std::map<std::string, double> clocks_ns_;
  const WallClock* wall_clock_ = nullptr;
  std::optional<int64_t> grants_due_ns_;
  std::optional<int64_t> turn_ns_;  ///< of the last OnTurn or Excuse
  FarmStep step_;
  FarmCounters counters_;
};

}  // namespace hone::server
