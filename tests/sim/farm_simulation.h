#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/core/random.h"
#include "db/farm_store.h"
#include "db/log_file.h"
#include "search/shared_tuner.h"
#include "server/farm.h"
#include "tests/sim/fault_vfs.h"
#include "tests/sim/simulated_operator.h"
#include "tests/sim/simulation_counts.h"
#include "tests/sim/simulation_options.h"
#include "worker/lease_desk.h"

// A farm under one seed: the real Farm, the real Tuner with its members, the real LeaseDesk of
// workers, the real answers to clients' requests and the real SQL on a disk that loses power, with
// simulated clocks, network, runs and crashes.
namespace hone::sim {

/// An attempt that kills every worker that runs it.
inline constexpr int64_t kPoison = 7;
/// The number of a session's comparison; numbers of candidates are far below.
inline constexpr int64_t kFirstComparison = int64_t{1} << 40;
/// No candidate is faster; SimulationOptions.doubts: some are said to be.
inline constexpr int64_t kFastestNs = 800;
inline constexpr int64_t kLieNs = 500;
inline constexpr char kTarget[] = "cpu:avx2,threads=1";

class FarmSimulation {
 public:
  explicit FarmSimulation(const SimulationOptions& options);
  ~FarmSimulation();

  /// Runs until every session has ended, then checks; empty, or what is wrong.
  std::string Run();

  using Counts = SimulationCounts;
  const Counts& counts() const { return counts_; }

 private:
  struct Running {
    int64_t number = 0;
    Hash128 token;
    int64_t attempt = 0;
    int64_t start_ns = 0, end_ns = 0;
    bool started = false;
    worker::DeskJob job;
  };
  struct SimWorker {
    std::string name;
    proto::WorkerRole role = proto::WorkerRole::kBoth;
    Hash128 instance;
    std::unique_ptr<worker::LeaseDesk> desk;
    std::optional<server::StreamId> stream;  ///< as the worker sees it
    /// Streams that honed believes in although the worker's side has ended, and until when.
    std::vector<std::pair<server::StreamId, int64_t>> ghosts;
    int streams = 0;
    int64_t dial_ns = 0;
    int64_t cut_since_ns = 0, cut_until_ns = 0;  ///< nothing comes through, and nobody is told
    bool closed = false;             ///< honed has ended the stream; the worker has not heard
    int64_t clock_offset_ns = 0;     ///< of its monotonic clock
    int64_t suspended_until_ns = 0;  ///< its machine sleeps, its clock too
    std::deque<std::pair<int64_t, proto::WorkerMessage>> to_honed;  ///< by when they arrive
    std::deque<std::pair<int64_t, proto::ServerMessage>> to_worker;
    std::vector<Running> jobs;
    std::map<Hash128, int64_t> granted_ns;  ///< leases, by its clock
    std::vector<proto::WorkResult> said;    ///< by any process of that name; some come again late
  };
  /// The driver of a session: what it asked for and got since the last start.
  struct SimSession {
    Hash128 id;
    std::string project;
    int64_t deadline_ns = INT64_MAX;
    bool created = false;  ///< durably
    int64_t created_ns = 0;
    bool member = false, ended = false, cancelled = false;
    std::map<int64_t, search::Tuner::Proposal> in_flight;
    std::map<int64_t, proto::WorkResult> collected;
    /// After a restart: what is asked for anew when the driver has replayed, and when that is or
    /// was.
    std::vector<search::Tuner::Proposal> to_ask;
    int64_t asks_ns = 0;
    // Its comparison:
    bool comparing = false, compared = false;
    std::optional<proto::WorkResult> verdict;
  };
  /// Who asked for a session and watches it.
  struct SimClient {
    int64_t ask_ns = 0;        ///< when it asks for its session next, or for its events
    int64_t cut_until_ns = 0;  ///< nothing comes through
    bool answered = false;     ///< it knows its session
    struct Reply {
      int64_t arrives_ns = 0;
      Hash128 session;                                      ///< the answer to its request, or
      int64_t after = 0;                                    ///< what stands behind this event
      std::vector<std::pair<int64_t, std::string>> events;  ///< number and payload
    };
    std::deque<Reply> replies;
    std::vector<std::pair<int64_t, std::string>> seen;
  };
  /// A unit that waits for its commit, and what follows it.
  struct Held {
    db::FarmUnit unit;
    server::FarmStep step;
    SimSession* session = nullptr;  ///< whose step of the search this is; null: nobody's
    std::vector<search::Tuner::Proposal> proposals;
    std::map<int64_t, proto::WorkResult> results;
    std::set<int64_t> lost;   ///< of the results: to infrastructure
    std::set<int64_t> unfit;  ///< of these: answered without a lease
    bool ends = false;
    bool compares = false;           ///< its comparison is over
    std::string revokes, drains;     ///< names of workers
    std::optional<size_t> asked_by;  ///< client whose request this answers
    Hash128 asked_for;               ///< its session
  };

  void OpenLog();
  void StartHoned();
  /// Ends honed; `power`: the machine too.
  void CrashHoned(bool power);
  void ReplaySearch();
  /// The search as it was and as the log has it propose the same.
  void CompareWithRestarted(search::SharedTuner& before);
  bool Paused() const { return now_ns_ < paused_until_ns_; }
  void MayPause();
  /// Once a pause is over.
  void Resume();
  void EndPause();
  /// honed learns of a stream's end when it runs.
  void Gone(server::StreamId stream);
  void CrashWorker(SimWorker& w);
  void Break(SimWorker& w);
  void Dial(SimWorker& w);
  /// Cuts some workers and clients off; neither side is told.
  void Partition();
  /// What time does to streams of a worker that is cut off.
  void StepLink(SimWorker& w);
  bool Cut(const SimWorker& w) const { return now_ns_ < w.cut_until_ns; }
  int64_t ClockOf(const SimWorker& w) const { return now_ns_ + w.clock_offset_ns; }
  void Suspend(SimWorker& w);
  void StepWorker(SimWorker& w);
  void TakeJobs(SimWorker& w);
  /// False: it has crashed.
  bool WorkOn(SimWorker& w);
  /// What a builder makes of a job; now and then not what its hash says.
  void FinishBuild(SimWorker& w, const Running& job);
  /// A run worker got the code of what it was asked to run.
  void CheckCode(const worker::DeskJob& job);
  /// What happens when the next job of a worker is over; false: the worker has crashed.
  bool FinishJob(SimWorker& w);
  void StepHoned();
  void Hear(SimWorker& w, proto::WorkerMessage message);
  /// Takes what the Farm wants into the unit, which waits for its commit.
  void Gather(Held held);
  void CommitAll();
  void CheckSuspects(const db::FarmUnit& unit);
  void Finish(Held& held);
  void Release(const server::FarmStep& step);
  void Drive(SimSession& session);
  /// False: it still replays what an earlier start of honed left.
  bool HasReplayed(SimSession& session);
  int64_t ComparisonOf(const SimSession& session) const {
    return kFirstComparison + (&session - sessions_.data());
  }
  /// Its finalists are compared, or need not be.
  bool Compare(SimSession& session);
  void TakeVerdict(SimSession& session, const proto::WorkResult& result);
  /// What a worker says of what it ran, now and then what is not so.
  void Lie(SimWorker& w, const Running& job, proto::WorkResult& result);
  /// A time that is too good counts when two devices say so.
  void CheckBelief(const server::Delivery& delivery);
  /// An operator lets every device back.
  void UndrainAll();
  void RestoreActs(db::FarmState& state);
  void StepOperator();
  void CheckGrant(const SimWorker& w);
  void KeepLate(const SimWorker& w);
  void HearLate();
  void StepClient(size_t index);
  /// honed's side of a client's calls.
  void AnswerRequest(size_t index);
  void AnswerWatch(SimClient& client);
  void Reply(SimClient& client, SimClient::Reply reply);
  void Accepted(size_t index, const Hash128& id);
  void SetDeadline(const SimSession& session);
  /// What a step delivers, at the moment when it came.
  void CheckTime(const server::FarmStep& step);
  void AddResults(SimSession& session, Held& held);
  void EndSession(SimSession& session, Held& held);
  void AddEvent(Held& held, const search::SearchEvent& event);
  void Submit(SimSession& session, const search::Tuner::Proposal& p, bool anew = false);
  void TakeResult(const server::Delivery& delivery);
  std::string CheckSession(const SimSession& session);
  std::string CheckLeases();
  std::string CheckClients();
  std::string Check();
  int64_t FarmNs() const;
  int64_t Delay() { return random_.Between(0, 30'000'000); }

  const SimulationOptions options_;
  Random random_;
  int64_t now_ns_ = 0, wall_ns_ = 0;
  FaultDisk disk_;
  std::unique_ptr<db::LogFile> log_;
  std::unique_ptr<db::FarmStore> store_;
  std::unique_ptr<server::LeaseReader> reader_;
  std::unique_ptr<server::Farm> farm_;
  std::unique_ptr<search::SharedTuner> search_;
  Hash128 stream_id_;
  std::vector<search::TuningTask> tasks_;
  std::vector<SimSession> sessions_;
  std::vector<SimClient> clients_;  ///< one each session, in its order
  int created_ = 0;                 ///< sessions ever
  std::vector<SimWorker> workers_;
  OperatorActs acts_;
  server::StreamId next_stream_ = 1;
  uint64_t starts_ = 0;
  std::deque<Held> held_;
  int64_t blocked_since_ns_ = -1;  ///< honed waits for a commit and does nothing else; -1: it runs
  int64_t unblocked_ns_ = 0, blocked_ns_ = 0;  ///< when it last went on; how long it waited in all
  int64_t paused_since_ns_ = -1, paused_until_ns_ = 0;  ///< honed stands still; -1: it does not
  std::vector<server::StreamId> gone_;                  ///< ended meanwhile
  bool search_busy_ = false;  ///< a step of the search waits for its commit: its lock is held
  int64_t next_tick_ns_ = 0, full_until_ns_ = 0;  ///< the second: of the disk
  // What happened, whatever honed makes of it.
  std::map<Hash128, std::string> accepted_;               ///< workers' journals: token to digest
  std::map<Hash128, std::pair<Hash128, int64_t>> asked_;  ///< by token: session and attempt
  std::set<Hash128> ran_;          ///< leases whose code has run, whatever became of it
  std::map<int64_t, int> losses_;  ///< durably, of suspects
  std::set<Hash128> started_;      ///< leases, durably
  std::set<int64_t> condemned_;
  std::set<int64_t> lost_answers_;  ///< attempts that the farm gave up, at nobody's cost
  std::set<int64_t> unfit_;         ///< of these: whose artifacts were gone again and again
  std::map<int64_t, std::set<std::string>> lies_;  ///< by attempt: workers that said kLieNs
  std::set<int64_t> unconfirmed_;  ///< answered as noisy, without a lease, at least once
  std::set<std::string> contents_;
  std::set<int64_t> forged_;  ///< Mistake::kAcceptAnyToken: attempts that it let through
  std::string wrong_;
  Counts counts_;
};

}  // namespace hone::sim
