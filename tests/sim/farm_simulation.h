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
#include "worker/lease_desk.h"

// A farm under one seed: the real Farm, the real Tuner with its members, the real LeaseDesk of
// workers and the real SQL on a disk that loses power, with a simulated clock, network, runs and
// crashes.
namespace hone::sim {

/// What a coordinator could get wrong; the simulation must notice each.
enum class Mistake : uint8_t {
  kNone,
  kSendBeforeCommit,    ///< acknowledge before the commit is synced
  kReuseStart,          ///< tokens begin anew after a restart
  kForgetOpenLeases,    ///< after a restart
  kCloseWithoutLease,   ///< results without the end of their lease
  kAcceptAnyToken,      ///< a result counts whatever became of its lease
  kDuplicateByContent,  ///< two results of equal content are one
  kNoRefund,            ///< a lost attempt keeps its trial
  kLostCredit,          ///< a worker's credit is not counted from zero on a new stream
  kWallClockLeases,     ///< limits of leases on a clock that jumps
  kLowSynchronous,      ///< commits that are not synced
  kForgetEvents,        ///< a restart replays all but the last of the search's events
  kForgetSuspects,      ///< a restart forgets whose worker was lost
};
inline constexpr int kNumMistakes = 13;
std::string_view NameOf(Mistake mistake);

struct SimulationOptions {
  uint64_t seed = 0;
  Mistake mistake = Mistake::kNone;
  int sessions = 2;
  int trials = 14;  ///< of each session
  int workers = 3;
  int steps = 20'000;
};

/// An attempt that kills every worker that runs it.
inline constexpr int64_t kPoison = 7;

class FarmSimulation {
 public:
  explicit FarmSimulation(const SimulationOptions& options);
  ~FarmSimulation();

  /// Runs until every session has ended, then checks; empty, or what is wrong.
  std::string Run();

  struct Counts {
    int restarts = 0, power_cuts = 0, worker_crashes = 0, breaks = 0, full_disks = 0;
    int condemned = 0, compared_restarts = 0, shared = 0, clock_jumps = 0;
    server::FarmCounters farm;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Running {
    int64_t number = 0;
    Hash128 token;
    int64_t attempt = 0;
    int64_t start_ns = 0, end_ns = 0;
    bool started = false;
  };
  struct SimWorker {
    std::string name;
    Hash128 instance;
    std::unique_ptr<worker::LeaseDesk> desk;
    std::optional<server::StreamId> stream;
    int streams = 0;
    int64_t dial_ns = 0;
    std::deque<std::pair<int64_t, proto::WorkerMessage>> to_honed;  ///< by when they arrive
    std::deque<std::pair<int64_t, proto::ServerMessage>> to_worker;
    std::vector<Running> jobs;
    std::set<int64_t> begun;              ///< attempts that this process has run
    std::vector<proto::WorkResult> said;  ///< by any process of that name; some come again late
  };
  /// The driver of a session: what it asked for and got since the last start.
  struct SimSession {
    Hash128 id;
    std::string project;
    int64_t join_ns = 0;
    bool member = false, ended = false;
    std::map<int64_t, search::Tuner::Proposal> in_flight;
    std::map<int64_t, proto::WorkResult> collected;
  };
  /// A unit that waits for its commit, and what follows it.
  struct Held {
    db::FarmUnit unit;
    server::FarmStep step;
    SimSession* session = nullptr;  ///< whose step of the search this is; null: nobody's
    std::vector<search::Tuner::Proposal> proposals;
    std::map<int64_t, proto::WorkResult> results;
    std::set<int64_t> lost;  ///< of the results: to infrastructure
    bool ends = false;
  };

  void OpenLog();
  void StartHoned();
  /// Ends honed; `power`: the machine too.
  void CrashHoned(bool power);
  void ReplaySearch();
  /// The search as it was and as the log has it propose the same.
  void CompareWithRestarted(search::SharedTuner& before);
  void CrashWorker(SimWorker& w);
  void Break(SimWorker& w);
  void Dial(SimWorker& w);
  void StepWorker(SimWorker& w);
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
  void AddResults(SimSession& session, Held& held);
  void EndSession(SimSession& session, Held& held);
  void AddEvent(Held& held, const std::string& type, const std::string& payload);
  void Submit(SimSession& session, const search::Tuner::Proposal& p);
  void TakeResult(const server::Delivery& delivery);
  std::string CheckSession(const SimSession& session);
  std::string CheckLeases();
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
  std::vector<SimWorker> workers_;
  server::StreamId next_stream_ = 1;
  uint64_t starts_ = 0;
  std::deque<Held> held_;
  bool search_busy_ = false;  ///< a step of the search waits for its commit: its lock is held
  int64_t next_tick_ns_ = 0;
  // What happened, whatever honed makes of it.
  std::map<Hash128, std::string> accepted_;               ///< workers' journals: token to digest
  std::map<Hash128, std::pair<Hash128, int64_t>> asked_;  ///< by token: session and attempt
  std::map<int64_t, int> lost_with_;  ///< attempts, by processes that ran them and died
  std::map<int64_t, int> losses_;     ///< durably, of suspects
  std::set<int64_t> condemned_;
  std::set<int64_t> lost_answers_;  ///< attempts that the farm gave up, at nobody's cost
  std::set<std::string> contents_;
  std::set<int64_t> forged_;  ///< Mistake::kAcceptAnyToken: attempts that it let through
  std::string wrong_;
  Counts counts_;
};

}  // namespace hone::sim
